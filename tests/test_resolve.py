"""A URI becomes a recorded checkpoint, or a named reason why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval_tasks.errors import CheckpointError, UserError
from eval_tasks.resolve import resolve
from eval_tasks.store import Store
from tests.planned import write_checkpoint


def test_the_same_content_elsewhere_is_the_same_checkpoint(store: Store, tmp_path: Path) -> None:
    first = resolve(store, checkpoint_uri=str(write_checkpoint(tmp_path / "step-1")), training_run="tiny")
    copy = resolve(store, checkpoint_uri=str(write_checkpoint(tmp_path / "copy-of-2")), training_run="other")
    assert first.checkpoint_id == copy.checkpoint_id
    assert (first.step, copy.step) == (1, 2)
    assert store.catalog.checkpoint(first.checkpoint_id) == copy


@pytest.mark.parametrize(
    ("name", "step"), [("step-0050", 50), ("run7-step-12", 12), ("global_step100_hf", 100), ("final", 0)]
)
def test_the_step_is_the_last_number_in_the_folders_name(store: Store, tmp_path: Path, name: str, step: int) -> None:
    folder = write_checkpoint(tmp_path / "in-99" / name)
    assert resolve(store, checkpoint_uri=f"{folder}/", training_run="tiny").step == step
    assert resolve(store, checkpoint_uri=str(folder), training_run="tiny", step=3).step == 3


def test_hashing_reports_its_progress_to_the_last_byte(store: Store, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    folder = write_checkpoint(tmp_path / "step-1")
    found = resolve(
        store, checkpoint_uri=str(folder), training_run="tiny", progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (found.n_bytes, found.n_bytes)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


@pytest.mark.parametrize("uri", ["", "  "])
def test_no_uri_is_not_the_present_folder(store: Store, uri: str) -> None:
    with pytest.raises(UserError, match="no checkpoint is named"):
        resolve(store, checkpoint_uri=uri, training_run="tiny")


def test_nothing_is_recorded_of_a_checkpoint_that_is_not_whole(store: Store, tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "step-1")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(CheckpointError) as caught:
        resolve(store, checkpoint_uri=str(folder), training_run="tiny")
    assert caught.value.reason
    assert "model.safetensors" in str(caught.value)
    assert store.catalog.checkpoints() == []
