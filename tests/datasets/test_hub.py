"""Data of the hub by way of its real client, from a hub on loopback: found, kept, checked, and refused by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from eval_tasks.datasets.source import Rows, read_source
from eval_tasks.errors import DriftError, InfraError, UserError
from eval_tasks.registry import SourceSpec
from eval_tasks.store import Store
from tests.datasets.fake_hub import FakeHub, reached

REVISION = "ab" * 20
REPOSITORY = ("org/name", REVISION)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with reached(FakeHub(files={REPOSITORY: {}}), monkeypatch, tmp_path / "cache") as running:
        yield running


def _put(hub: FakeHub, name: str, *values: int) -> None:
    hub.files[REPOSITORY][name] = "".join(f'{{"a": {value}}}\n' for value in values).encode()


def _source(**changes: Any) -> SourceSpec:
    fields = {"hub": "org/name", "revision": REVISION, "split": "test", **changes}
    return SourceSpec(**{name: value for name, value in fields.items() if value is not None})


def _read(store: Store, **changes: Any) -> Rows:
    return read_source(_source(**changes), Path(), kept=store.hub_files)


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("data/test-00000-of-00002.jsonl", None),
        ("test.jsonl", None),
        ("main/test-0.jsonl", "main"),
        ("main/test/0000.jsonl", "main"),
    ],
)
def test_the_split_is_found_where_the_hub_keeps_it(hub: FakeHub, store: Store, name: str, config: str | None) -> None:
    _put(hub, name, 1, 2)
    _put(hub, name.replace("test", "train"), 3)
    assert _read(store, config=config).rows == [{"a": 1}, {"a": 2}]
    assert not any("train" in path for path in hub.asked)


def test_files_are_read_by_name_and_pattern(hub: FakeHub, store: Store) -> None:
    _put(hub, "input.jsonl", 1)
    _put(hub, "more/b.jsonl", 3)
    _put(hub, "more/a.jsonl", 2)
    _put(hub, "more/README.md")
    table = _read(store, split=None, files=["input.jsonl", "more/*.jsonl"])
    assert table.rows == [{"a": 1}, {"a": 2}, {"a": 3}]
    with pytest.raises(UserError, match=r"has no file 'inputs\.jsonl'; check source\.files"):
        _read(store, split=None, files=["input.jsonl", "inputs.jsonl"])


def test_shards_are_read_in_order_and_their_digest_is_checked(hub: FakeHub, store: Store) -> None:
    _put(hub, "data/test-00001-of-00002.jsonl", 2)
    _put(hub, "data/test-00000-of-00002.jsonl", 1)
    table = _read(store)
    assert table.rows == [{"a": 1}, {"a": 2}]
    assert _read(store, blake3=table.blake3).blake3 == table.blake3
    with pytest.raises(DriftError, match="org/name"):
        _read(store, blake3="0" * 64)


def test_what_was_fetched_is_kept_and_the_hub_never_asked_again(
    hub: FakeHub, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _put(hub, "test.jsonl", 1)
    first = _read(store)
    asked = len(hub.asked)
    assert asked > 0
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "another machine's"))
    assert _read(store) == first
    monkeypatch.delenv("HF_OFFLINE")
    assert _read(store) == first
    assert len(hub.asked) == asked
    with pytest.raises(UserError, match="HF_OFFLINE=0"):
        _read(store, split="train")


def test_a_kept_copy_that_was_changed_is_refused_offline_and_fetched_anew_online(
    hub: FakeHub, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _put(hub, "test.jsonl", 1)
    first = _read(store)
    (listed,) = (tmp_path / "home/store/hub").glob("*.json")
    ((_, digest),) = json.loads(listed.read_text("utf-8"))["files"]
    blob = Path(store.blobs.uri(digest).removeprefix("file://"))
    blob.write_bytes(b'{"a": 9}\n')
    monkeypatch.delenv("HF_OFFLINE")
    with pytest.raises(DriftError, match="it was changed"):
        _read(store)
    monkeypatch.setenv("HF_OFFLINE", "0")
    assert _read(store) == first
    listed.write_text("{torn", "utf-8")
    assert _read(store) == first


def test_offline_and_never_fetched(hub: FakeHub, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    _put(hub, "test.jsonl", 1)
    monkeypatch.delenv("HF_OFFLINE")
    with pytest.raises(UserError, match=r"neither in the store nor in the local.*HF_OFFLINE=0"):
        _read(store)
    assert hub.asked == []


def test_a_gated_set_wants_a_token_and_says_so(hub: FakeHub, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    _put(hub, "test.jsonl", 1)
    hub.gated.add("org/name")
    with pytest.raises(UserError, match=r"is gated: accept its terms.*HF_TOKEN"):
        _read(store)
    monkeypatch.setenv("HF_TOKEN", "hf_of_an_account_without_access")
    with pytest.raises(UserError, match="is gated"):
        _read(store)
    monkeypatch.setenv("HF_TOKEN", hub.token)
    assert _read(store).rows == [{"a": 1}]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hub": "org/nmae"}, "no data set org/nmae at revision .*, or the account"),
        ({"revision": "cd" * 20}, "the hub has no org/name at revision cdcd.*pin the 40 characters"),
        ({"split": "train"}, "no data file for split 'train'"),
    ],
)
def test_what_is_not_there_is_named(hub: FakeHub, store: Store, changes: dict[str, Any], message: str) -> None:
    _put(hub, "test.jsonl", 1)
    with pytest.raises(UserError, match=message):
        _read(store, **changes)


def test_a_hub_that_fails_may_be_asked_again(hub: FakeHub, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    _put(hub, "test.jsonl", 1)
    hub.broken = True
    with pytest.raises(InfraError, match="cannot fetch org/name"):
        _read(store)
    hub.broken, hub.busy = False, True
    with pytest.raises(InfraError, match="too many requests, try again in 3600 s; with HF_TOKEN"):
        _read(store)
    hub.busy = False
    assert _read(store).rows == [{"a": 1}]
