"""The first reply to a question stays, however many arrive at once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from eval_tasks.errors import DataError
from eval_tasks.store.files import FileStore
from eval_tasks.store.replies import Replies


@pytest.fixture(params=["local", "memory"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> FileStore:
    return FileStore(f"file://{tmp_path}" if request.param == "local" else f"memory://{tmp_path.name}-replies")


def test_the_first_reply_stays(files: FileStore) -> None:
    replies = Replies(files)
    assert replies.kept("run", "i1") is None
    first = replies.keep("run", "i1", {"body": {"n": 1}})
    assert first == {"item_id": "i1", "body": {"n": 1}}
    assert replies.keep("run", "i1", {"body": {"n": 2}}) == replies.kept("run", "i1") == first
    assert replies.keep("run", "i2", {"body": {"n": 2}})["body"] == {"n": 2}


def test_of_replies_that_arrive_at_once_all_writers_are_given_the_same(tmp_path: Path) -> None:
    start = threading.Barrier(8)
    given: list[dict[str, object]] = []

    def write(n: int) -> None:
        replies = Replies(FileStore(f"file://{tmp_path}"))
        for item in range(25):
            start.wait()
            given.append(replies.keep("run", f"i{item}", {"body": {"n": n}}))

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(given) == 200
    replies = Replies(FileStore(f"file://{tmp_path}"))
    assert all(reply == replies.kept("run", str(reply["item_id"])) for reply in given)
    assert not [path for path in tmp_path.rglob("*") if path.suffix == ".tmp"]


def test_a_torn_reply_is_no_reply(tmp_path: Path) -> None:
    replies = Replies(FileStore(f"file://{tmp_path}"))
    replies.keep("run", "i1", {"body": {}})
    (path,) = tmp_path.rglob("*.json")
    path.write_bytes(b"{")
    with pytest.raises(DataError, match="damaged"):
        replies.keep("run", "i1", {"body": {}})
