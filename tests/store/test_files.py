"""Files that appear whole or not at all, on a disk and on an object store."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from eval_tasks.digests import digest_bytes
from eval_tasks.errors import DataError, InfraError, UserError
from eval_tasks.store.files import FileStore


@pytest.fixture(params=["local", "file", "memory"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> FileStore:
    return FileStore(
        {"local": str(tmp_path / "s"), "file": f"file://{tmp_path}/s/", "memory": f"memory://{tmp_path.name}"}[
            request.param
        ]
    )


def test_bytes_come_back_and_are_replaced(files: FileStore) -> None:
    files.write("a/b/c.bin", b"one")
    files.write("a/b/c.bin", b"three")
    assert files.read("a/b/c.bin") == b"three"
    assert files.size("a/b/c.bin") == 5
    assert files.exists("a/b/c.bin")
    with files.open("a/b/c.bin") as handle:
        handle.seek(2)
        assert handle.read() == b"ree"


def test_names_are_of_files_directly_in_a_folder(files: FileStore) -> None:
    for name in ("a/2", "a/1", "a/deep/3", "b/4"):
        files.write(name, b"x")
    assert files.names("a") == ["a/1", "a/2"]
    assert files.names("nowhere") == []
    assert not files.exists("a")


def test_what_is_absent_is_said_plainly(files: FileStore) -> None:
    assert not files.exists("x")
    for ask in (files.read, files.size, files.open):
        with pytest.raises(FileNotFoundError):
            ask("x")
    files.remove("x")


def test_the_errors_of_a_client_library_are_infrastructure(files: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    unreachable = type("EndpointConnectionError", (Exception,), {"__module__": "botocore.exceptions"})

    def fail(*_: object, **__: object) -> None:
        raise unreachable("could not connect")

    monkeypatch.setattr(type(files._fs), "cat_file", fail)
    with pytest.raises(InfraError, match=r"cannot read .*/a/x: could not connect"):
        files.read("a/x")


def test_removed_is_gone(files: FileStore) -> None:
    files.write("a/x", b"1")
    files.remove("a/x")
    assert files.names("a") == []


def test_a_draft_knows_what_it_published(files: FileStore) -> None:
    with files.draft("a/x") as draft:
        draft.handle.write(b"hel")
        draft.handle.write(b"lo")
        assert not files.exists("a/x")
    assert (draft.size, draft.digest) == (5, digest_bytes(b"hello"))
    assert files.read("a/x") == b"hello"


def test_a_draft_that_fails_leaves_what_was_there(files: FileStore) -> None:
    files.write("a/x", b"old")
    with pytest.raises(DataError), files.draft("a/x") as draft:
        draft.handle.write(b"new")
        raise DataError("no")
    assert files.read("a/x") == b"old"
    assert files.names("a") == ["a/x"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EACCES])
def test_a_disk_that_refuses_is_named(files: FileStore, number: int) -> None:
    with pytest.raises(InfraError, match=r"cannot write .*a/x: "), files.draft("a/x") as draft:
        draft.handle.write(b"half")
        raise OSError(number, "no")
    assert files.names("a") == []


def test_a_file_where_a_folder_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("")
    with pytest.raises(InfraError, match=r"cannot write .*/s/a/x"):
        FileStore(str(tmp_path / "s")).write("a/x", b"1")


def test_an_unknown_kind_of_storage_is_named() -> None:
    with pytest.raises(UserError, match="nosuch://bucket: no client"):
        FileStore("nosuch://bucket")
