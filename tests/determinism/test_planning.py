"""What a night is planned for, and what it refuses: nothing configured, unknown names, a checkpoint that changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from eval_tasks.errors import DriftError, UserError
from tests.determinism.conftest import Nights


def moved_to(nights: Nights, folder: Path, checkpoint_id: str = "") -> None:
    policy = nights.config.nightly().model_copy(update={"checkpoint": str(folder), "checkpoint_id": checkpoint_id})
    nights.config = nights.config.model_copy(update={"determinism": policy})


def test_bad_input_is_refused_by_name(nights: Nights) -> None:
    with pytest.raises(UserError, match="no environment 'tow' in the configuration; close: 'two'"):
        nights.plan(1, "tow")
    policy = nights.config.nightly()
    nights.config = nights.config.model_copy(update={"determinism": policy.model_copy(update={"suite": "colors-all"})})
    with pytest.raises(UserError, match="no suite 'colors-all'"):
        nights.plan(1)
    nights.config = nights.config.model_copy(update={"determinism": None})
    with pytest.raises(UserError, match="no fixed suite is configured"):
        nights.plan(1)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_one_flipped_bit_in_the_weights_and_an_edited_tokenizer_are_another_checkpoint(
    nights: Nights, checkpoint: Path, tmp_path: Path, name: str
) -> None:
    nights.run(1)
    folder = tmp_path / "step-1"
    shutil.copytree(checkpoint, folder)
    data = bytearray((folder / name).read_bytes())
    if name == "tokenizer.json":
        data += b"\n"
    else:
        data[-5] ^= 1
    (folder / name).write_bytes(bytes(data))
    moved_to(nights, folder)
    with pytest.raises(DriftError, match=r"the fixed checkpoint .* its files changed; restore them, or name the new"):
        nights.plan(2)
    moved_to(nights, folder, checkpoint_id="0" * 64)
    with pytest.raises(DriftError, match="it was 000000000000"):
        nights.plan(2)


def test_a_fixed_checkpoint_that_is_changed_on_purpose_waits_for_a_person(nights: Nights, tmp_path: Path) -> None:
    from eval_tasks.resolve import resolve
    from tests.planned import write_checkpoint

    nights.run(1)
    other = write_checkpoint(tmp_path / "step-2", seed=9)
    known = resolve(nights.store, checkpoint_uri=str(other), training_run="x").checkpoint_id
    moved_to(nights, other, checkpoint_id=known)
    assert nights.run(2).status == "candidate"


def test_runs_of_nights_are_in_no_series_of_a_training_run(nights: Nights) -> None:
    nights.run(1)
    runs = nights.store.catalog.runs()
    assert len(runs) == 2
    assert {run.training_run for run in runs} == {"mock/determinism/one"}
