from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from blake3 import blake3

from eval_tasks.checkpoint import build_manifest
from eval_tasks.checkpoint.storage import Folder
from eval_tasks.errors import CheckpointError
from eval_tasks.records import Checkpoint


def _build(folder: Path | str) -> Checkpoint:
    return build_manifest(str(folder), training_run="tiny", step=100)


def _checksums(folder: Path, **changes: object) -> Path:
    claims = {
        file.name: {"size": file.stat().st_size, "blake3": blake3(file.read_bytes()).hexdigest()}
        for file in sorted(folder.iterdir())
    }
    path = folder / "checksums.blake3.json"
    path.write_text(json.dumps(claims | changes))
    return path


def test_the_manifest_holds_what_can_change_a_number_and_nothing_else(single: Path) -> None:
    before = _build(single)
    assert [file.path for file in before.files] == [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    for name in ("trainer_state.json", "optimizer.pt", "README.md", ".hidden", "model.safetensors.tmp", "PROMOTE"):
        (single / name).write_text("x")
    (single / "adapter_model.safetensors").write_bytes(b"x")
    (single / "global_step100").mkdir()
    assert _build(single) == before


@pytest.mark.parametrize("name", ["chat_template.jinja", "generation_config.json", "special_tokens_map.json"])
def test_a_file_that_can_change_a_number_makes_another_checkpoint(single: Path, name: str) -> None:
    before = _build(single)
    (single / name).write_text("{}")
    assert _build(single).checkpoint_id != before.checkpoint_id


def test_content_is_identity_and_place_is_not(single: Path, tmp_path: Path, upload: Callable[[Path, str], str]) -> None:
    before = _build(single)
    copy = shutil.copytree(single, tmp_path / "elsewhere")
    assert _build(copy).checkpoint_id == before.checkpoint_id
    assert _build(upload(single, "run/step-100")).checkpoint_id == before.checkpoint_id
    data = bytearray((single / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (single / "model.safetensors").write_bytes(data)
    assert _build(single).checkpoint_id != before.checkpoint_id


def test_sizes_and_digests_are_those_of_the_files(sharded: Path) -> None:
    for file in _build(sharded).files:
        data = (sharded / file.path).read_bytes()
        assert (file.size, file.blake3) == (len(data), blake3(data).hexdigest())


def test_a_second_layout_beside_the_one_loaded_changes_nothing(sharded: Path, single: Path) -> None:
    before = _build(single)
    for file in sharded.glob("model-*"):
        shutil.copy(file, single)
    shutil.copy(sharded / "model.safetensors.index.json", single)
    assert _build(single) == before


def test_an_incomplete_one_is_refused_with_its_reason(sharded: Path) -> None:
    next(iter(sharded.glob("model-00003*"))).unlink()
    with pytest.raises(CheckpointError, match="model-00003") as caught:
        _build(sharded)
    assert caught.value.reason == "missing_shard"


def test_a_vanished_one_is_gone(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError) as caught:
        _build(tmp_path / "step-1")
    assert caught.value.reason == "gone"


def test_a_trainers_checksums_spare_the_reading(single: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _build(single)
    _checksums(single)

    def no_reading(self: Folder, path: str) -> None:
        raise AssertionError(f"{path} was read")

    monkeypatch.setattr(Folder, "open", no_reading)
    assert _build(single) == before


def test_checksums_older_than_the_file_are_not_believed(single: Path) -> None:
    checksums = _checksums(single)
    data = bytearray((single / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (single / "model.safetensors").write_bytes(data)
    os.utime(checksums, (1, 1))
    assert _build(single).files[1].blake3 == blake3(bytes(data)).hexdigest()


@pytest.mark.parametrize(
    "claim",
    [{"size": 1, "blake3": "0" * 64}, {"size": 1}, "0" * 64, {"size": 1, "blake3": "zz"}],
)
def test_checksums_that_do_not_fit_are_named(single: Path, claim: object) -> None:
    _checksums(single, **{"model.safetensors": claim})
    with pytest.raises(CheckpointError, match=r"model\.safetensors") as caught:
        _build(single)
    assert caught.value.reason == "checksum_mismatch"


def test_torn_checksums_are_named(single: Path) -> None:
    (single / "checksums.blake3.json").write_text('{"model')
    with pytest.raises(CheckpointError, match=r"checksums\.blake3\.json") as caught:
        _build(single)
    assert caught.value.reason == "checksum_mismatch"


def test_progress_counts_every_byte(sharded: Path) -> None:
    seen: list[tuple[int, int]] = []
    checkpoint = build_manifest(
        str(sharded), training_run="tiny", step=1, progress=lambda done, total: seen.append((done, total))
    )
    assert seen == sorted(seen)
    assert seen[-1] == (checkpoint.n_bytes, checkpoint.n_bytes)
    assert {total for _, total in seen} == {checkpoint.n_bytes}
