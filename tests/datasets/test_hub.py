from __future__ import annotations

from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from eval_tasks.datasets.source import read_source
from eval_tasks.errors import DriftError, UserError
from eval_tasks.registry import SourceSpec

REVISION = "ab" * 20


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A snapshot folder that stands for the hub's cache; the download function checks what it is asked."""
    folder = tmp_path / "snapshot"

    def snapshot_download(repo_id: str, **options: Any) -> str:
        assert (repo_id, options["repo_type"], options["revision"]) == ("org/name", "dataset", REVISION)
        assert options["local_files_only"] is True
        return str(folder)

    monkeypatch.delenv("HF_OFFLINE", raising=False)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return folder


def _put(folder: Path, name: str, *values: int) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f'{{"a": {value}}}\n' for value in values), "utf-8")


def _source(**changes: Any) -> SourceSpec:
    return SourceSpec(**{"hub": "org/name", "revision": REVISION, "split": "test", **changes})


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("data/test-00000-of-00002.jsonl", None),
        ("test.jsonl", None),
        ("main/test-0.jsonl", "main"),
        ("main/test/0000.jsonl", "main"),
    ],
)
def test_the_split_is_found_where_the_hub_keeps_it(cache: Path, tmp_path: Path, name: str, config: str | None) -> None:
    _put(cache, name, 1, 2)
    _put(cache, name.replace("test", "train"), 3)
    assert read_source(_source(config=config), tmp_path).rows == [{"a": 1}, {"a": 2}]


def test_shards_are_read_in_order_and_their_digest_is_checked(cache: Path, tmp_path: Path) -> None:
    _put(cache, "data/test-00001-of-00002.jsonl", 2)
    _put(cache, "data/test-00000-of-00002.jsonl", 1)
    table = read_source(_source(), tmp_path)
    assert table.rows == [{"a": 1}, {"a": 2}]
    assert read_source(_source(blake3=table.blake3), tmp_path).blake3 == table.blake3
    _put(cache, "data/test-00001-of-00002.jsonl", 3)
    with pytest.raises(DriftError, match="org/name"):
        read_source(_source(blake3=table.blake3), tmp_path)


def test_a_split_that_is_not_there(cache: Path, tmp_path: Path) -> None:
    _put(cache, "data/train.jsonl", 1)
    with pytest.raises(UserError, match="no data file for split 'test'"):
        read_source(_source(), tmp_path)


def test_offline_and_not_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "empty"))
    monkeypatch.delenv("HF_OFFLINE", raising=False)
    with pytest.raises(UserError, match="HF_OFFLINE=0"):
        read_source(_source(), tmp_path)


def test_hf_offline_0_allows_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def snapshot_download(repo_id: str, **options: Any) -> str:
        asked.append(options["local_files_only"])
        return str(tmp_path)

    monkeypatch.setenv("HF_OFFLINE", "0")
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    _put(tmp_path, "test.jsonl", 1)
    assert read_source(_source(), tmp_path).rows == [{"a": 1}]
    assert asked == [False]
