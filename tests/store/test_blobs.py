"""Content-addressed bytes."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.errors import DataError, DriftError, InfraError
from eval_tasks.records import Item
from eval_tasks.settings import Settings
from eval_tasks.store import Store, open_store
from tests.store.samples import batch


def _file(settings: Settings, digest: str) -> Path:
    return Path(settings.store_uri) / "blobs" / digest[:2] / digest[2:]


def test_the_same_bytes_are_stored_once_and_come_back(store: Store) -> None:
    digest = store.blobs.put(b"report")
    assert store.blobs.put(b"report") == digest
    assert store.blobs.exists(digest)
    assert store.blobs.get(digest) == b"report"


def test_a_blob_that_was_changed_is_drift(store: Store, settings: Settings) -> None:
    digest = store.blobs.put(b"report")
    _file(settings, digest).write_bytes(b"Report")
    with pytest.raises(DriftError, match=f"{digest[2:]} has the digest"):
        store.blobs.get(digest)
    store.blobs.put(b"report")
    assert store.blobs.get(digest) == b"report"


def test_an_absent_blob_is_named(store: Store) -> None:
    assert not store.blobs.exists("0" * 64)
    with pytest.raises(DataError, match="0" * 64):
        store.blobs.get("0" * 64)


def test_json_is_addressed_by_its_canonical_form(store: Store) -> None:
    digest = store.blobs.put_json({"b": 1, "a": [1.5, None]})
    assert store.blobs.put_json({"a": [1.5, None], "b": 1.0}) == digest
    assert store.blobs.get_json(digest) == {"a": [1.5, None], "b": 1}


def test_items_come_back_whole_and_in_order(store: Store) -> None:
    items = [
        Item(item_id="b", fields={"question": "two?", "n": 2**60, "list": ["x", None, 1.5]}, target=1, cluster="p"),
        Item(item_id="a", fields={"question": "one?"}, target="é", metadata={"k": {"z": True}}, stratum="s"),
    ]
    digest = store.blobs.put_items(items)
    assert store.blobs.put_items(items[::-1]) == digest
    assert store.blobs.get_items(digest) == [items[1], items[0]]
    assert store.blobs.get_items(digest, {"b"}) == [items[0]]


def test_an_item_that_is_not_there_or_there_twice_is_named(store: Store) -> None:
    digest = store.blobs.put_items([Item(item_id="a", fields={})])
    with pytest.raises(DataError, match="zz"):
        store.blobs.get_items(digest, ["a", "zz"])
    with pytest.raises(DataError, match="more than once: a"):
        store.blobs.put_items([Item(item_id="a", fields={}), Item(item_id="a", fields={"x": 1})])


def test_no_items_are_items_too(store: Store) -> None:
    assert store.blobs.get_items(store.blobs.put_items([])) == []


def test_half_a_surrogate_pair_in_an_item_is_replaced(store: Store) -> None:
    digest = store.blobs.put_items([Item(item_id="a", fields={"q": "x\ud800y"}, target="\udc00")])
    assert store.blobs.get_items(digest) == [Item(item_id="a", fields={"q": "x\ufffdy"}, target="\ufffd")]


def test_batches_come_back_all_or_by_shard(store: Store) -> None:
    batches = [batch(1, "c", shard=1), batch(0, "a", "b")]
    digest = store.blobs.put_batches(batches)
    assert store.blobs.get_batches(digest) == [batches[1], batches[0]]
    assert store.blobs.get_batches(digest, shard=1) == [batches[0]]


def test_a_full_disk_leaves_nothing_and_names_the_place(
    store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("eval_tasks.store.files.os.fsync", full)
    with pytest.raises(InfraError, match=r"blobs/.*No space left on device"):
        store.blobs.put(b"x" * 1000)
    monkeypatch.undo()
    assert [path for path in Path(settings.store_uri).rglob("*") if path.is_file()] == []
    assert store.blobs.get(store.blobs.put(b"x" * 1000)) == b"x" * 1000


@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_any_fsspec_uri_will_do(settings: Settings, tmp_path: Path, scheme: str) -> None:
    place = f"file://{tmp_path}/elsewhere" if scheme == "file" else f"memory://{tmp_path.name}"
    with open_store(settings.model_copy(update={"store_uri": place})) as store:
        digest = store.blobs.put(b"x")
        assert store.blobs.uri(digest).startswith(place)
        assert store.blobs.get(digest) == b"x"
