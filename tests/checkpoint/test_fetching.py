from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import pytest

from eval_tasks.checkpoint import build_manifest, fetch
from eval_tasks.checkpoint.storage import Folder
from eval_tasks.errors import CheckpointGoneError, DriftError, InfraError
from eval_tasks.records import Checkpoint


def _build(uri: Path | str) -> Checkpoint:
    return build_manifest(str(uri), training_run="tiny", step=200)


@pytest.fixture
def remote(sharded: Path, upload: Callable[[Path, str], str]) -> Checkpoint:
    return _build(upload(sharded, "run/step-200"))


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def test_a_local_one_is_used_where_it_lies(sharded: Path, tmp_path: Path) -> None:
    assert fetch(_build(sharded), tmp_path / "cache") == sharded
    assert not (tmp_path / "cache").exists()


def test_a_local_file_of_the_same_size_and_other_bytes_is_drift(sharded: Path, tmp_path: Path) -> None:
    checkpoint = _build(sharded)
    _flip(sharded / "model-00002-of-00003.safetensors")
    with pytest.raises(DriftError, match="model-00002-of-00003"):
        fetch(checkpoint, tmp_path)


def test_a_removed_local_file_is_gone(sharded: Path, tmp_path: Path) -> None:
    checkpoint = _build(sharded)
    (sharded / "tokenizer.json").unlink()
    with pytest.raises(CheckpointGoneError, match=r"tokenizer\.json"):
        fetch(checkpoint, tmp_path)


def test_a_remote_one_is_copied_under_its_id(remote: Checkpoint, sharded: Path, tmp_path: Path) -> None:
    folder = fetch(remote, tmp_path / "cache")
    assert folder == tmp_path / "cache" / remote.checkpoint_id
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {
        file.path: (sharded / file.path).read_bytes() for file in remote.files
    }
    assert [entry.name for entry in (tmp_path / "cache").iterdir()] == [remote.checkpoint_id]


def test_a_copy_is_used_again_without_the_source(remote: Checkpoint, tmp_path: Path) -> None:
    folder = fetch(remote, tmp_path)
    fsspec.filesystem("memory").rm("/bucket", recursive=True)
    assert fetch(remote, tmp_path) == folder


@pytest.mark.parametrize("damage", ["flipped", "removed"])
def test_a_damaged_copy_is_made_again(remote: Checkpoint, tmp_path: Path, damage: str) -> None:
    copy = fetch(remote, tmp_path) / "model-00001-of-00003.safetensors"
    right = copy.read_bytes()
    _flip(copy) if damage == "flipped" else copy.unlink()
    assert (fetch(remote, tmp_path) / copy.name).read_bytes() == right
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []


def test_a_changed_or_removed_source_leaves_nothing_behind(remote: Checkpoint, tmp_path: Path) -> None:
    fs, cache = fsspec.filesystem("memory"), tmp_path / "cache"
    data = bytearray(fs.cat("/bucket/run/step-200/tokenizer.json"))
    fs.pipe("/bucket/run/step-200/tokenizer.json", bytes(data[::-1]))
    with pytest.raises(DriftError, match=r"tokenizer\.json"):
        fetch(remote, cache)
    fs.rm("/bucket/run/step-200/tokenizer.json")
    with pytest.raises(CheckpointGoneError, match=r"tokenizer\.json"):
        fetch(remote, cache)
    assert list(cache.iterdir()) == []


def test_a_full_disk_is_named_and_leaves_nothing_behind(
    remote: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Path.open

    def full(self: Path, *args: object, **kwargs: object) -> object:
        if self.name.startswith("model-00002"):
            raise OSError(errno.ENOSPC, "No space left on device", str(self))
        return opened(self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(InfraError, match="No space left"):
        fetch(remote, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_pods_that_fetch_at_once_share_one_copy(sharded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The object store in memory has one read position per file, so the disk stands in for a remote place here.
    checkpoint = _build(sharded)
    monkeypatch.setattr(Folder, "local", None)
    with ThreadPoolExecutor(8) as pool:
        folders = set(pool.map(lambda _: fetch(checkpoint, tmp_path / "cache"), range(16)))
    assert folders == {tmp_path / "cache" / checkpoint.checkpoint_id}
    assert [entry.name for entry in (tmp_path / "cache").iterdir()] == [checkpoint.checkpoint_id]


def test_the_cache_is_keyed_by_content_not_by_path(
    sharded: Path, tmp_path: Path, upload: Callable[[Path, str], str]
) -> None:
    first = _build(upload(sharded, "run/step-200"))
    folder_a = fetch(first, tmp_path / "cache")
    other = shutil.copytree(sharded, tmp_path / "other")
    _flip(other / "model-00001-of-00003.safetensors")
    second = _build(upload(other, "run/step-200"))
    assert second.uri == first.uri
    assert fetch(second, tmp_path / "cache") != folder_a


def test_a_source_that_fails_is_not_taken_for_a_full_disk(
    remote: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(self: object, size: int = -1) -> bytes:
        raise OSError(errno.EIO, "input/output error")

    from fsspec.implementations.memory import MemoryFile

    monkeypatch.setattr(MemoryFile, "read", unreadable, raising=False)
    with pytest.raises(InfraError, match=r"config\.json could not be read"):
        fetch(remote, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []
