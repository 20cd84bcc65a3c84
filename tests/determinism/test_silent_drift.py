"""What changes without a word: each is planted, and the gate that catches it is named. Not one number gets through.

| planted | caught by |
|---|---|
| a kernel flag in one pod's environment | the run's environment pin, at the shard |
| another library version | the night: a new fingerprint, measured against the baseline |
| an edited tokenizer, one flipped bit in the weights | the night's fixed checkpoint; the identity of any checkpoint |
| the same, between planning and computing | the pod's own check of the bytes |
| an edited template | registration of the benchmark |
| an edited scorer | grading |
| other rows, and nothing else changed | the night against its baseline |
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from eval_tasks.errors import DriftError, UserError
from eval_tasks.gate import gate
from eval_tasks.grade import grade
from eval_tasks.register import register_benchmark
from eval_tasks.resolve import resolve
from eval_tasks.run import OtherEnvironmentError, run_shard
from eval_tasks.scoring import vector_file
from eval_tasks.store import Store
from tests.determinism.conftest import Nights, nudged, worse
from tests.planned import NOW, planned, register, uri_of

Damage = Callable[[Path], None]


def edit_tokenizer(folder: Path) -> None:
    file = folder / "tokenizer.json"
    file.write_bytes(file.read_bytes() + b"\n")


def flip_one_bit(folder: Path) -> None:
    file = folder / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[-5] ^= 1
    file.write_bytes(bytes(data))


DAMAGES = pytest.mark.parametrize("damage", [edit_tokenizer, flip_one_bit])


@pytest.fixture
def own(checkpoint: Path, tmp_path: Path) -> Path:
    """A copy of the checkpoint that may be damaged."""
    folder = tmp_path / "own" / "step-1"
    shutil.copytree(checkpoint, folder)
    return folder


def test_a_kernel_flag_in_one_pod_is_caught_at_its_shard(
    store: Store, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(store, tmp_path / "benchmarks")
    made = planned(store, checkpoint)
    keywords: dict[str, Any] = {"plan_uri": uri_of(store, made), "owner": "pod", "cache_dir": tmp_path / "cache"}
    run_shard(store, shard=0, **keywords)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    with pytest.raises(OtherEnvironmentError, match="variable ONEDNN_MAX_CPU_ISA: absent -> 'AVX2'"):
        run_shard(store, shard=1, **keywords)
    assert [row.status for row in store.catalog.shards(made.run_id)][:2] == ["done", "failed"]


def test_another_library_version_that_moves_scores_is_caught_by_the_night(nights: Nights) -> None:
    nights.machine = {"driver": "550", "transformers": "5.1.0"}
    before = nights.run(1)
    nights.machine = {"driver": "550", "transformers": "5.2.0"}
    nights.fault = worse
    after = nights.run(2)
    assert (before.status, after.status) == ("adopted", "candidate")
    (block,) = nights.store.catalog.open_blocks()
    assert (block.kind, block.fingerprint) == ("new_environment", after.env_fingerprint)
    assert not gate(nights.store, environment="one").open


@DAMAGES
def test_a_changed_file_of_the_fixed_checkpoint_is_caught_when_the_night_is_planned(
    nights: Nights, own: Path, damage: Damage
) -> None:
    policy = nights.config.nightly().model_copy(update={"checkpoint": str(own)})
    nights.config = nights.config.model_copy(update={"determinism": policy})
    assert nights.run(1).status == "adopted"
    damage(own)
    with pytest.raises(DriftError, match=r"the fixed checkpoint .* its files changed"):
        nights.plan(2)


@DAMAGES
def test_a_changed_file_of_any_checkpoint_is_another_checkpoint(store: Store, own: Path, damage: Damage) -> None:
    before = resolve(store, checkpoint_uri=str(own), training_run="tiny", step=1)
    damage(own)
    after = resolve(store, checkpoint_uri=str(own), training_run="tiny", step=1)
    assert before.checkpoint_id != after.checkpoint_id


@DAMAGES
def test_a_file_that_changes_after_planning_is_caught_by_the_pod(
    store: Store, own: Path, tmp_path: Path, damage: Damage
) -> None:
    register(store, tmp_path / "benchmarks")
    made = planned(store, own)
    damage(own)
    with pytest.raises(DriftError, match=r"is not the file .* what lies there now is another checkpoint"):
        run_shard(store, plan_uri=uri_of(store, made), shard=0, owner="pod", cache_dir=tmp_path / "cache")
    assert store.queue.results(made.run_id) == {}


def test_an_edited_template_is_caught_at_registration(store: Store, tmp_path: Path) -> None:
    register(store, tmp_path / "benchmarks")
    file = tmp_path / "benchmarks" / "colours.yaml"
    document = yaml.safe_load(file.read_text("utf-8"))
    document["prompt"]["item"] += " "
    file.write_text(yaml.safe_dump(document), "utf-8")
    with pytest.raises(UserError, match=r"colours.*template"):
        register_benchmark(store, file, NOW)


def test_an_edited_scorer_is_caught_when_a_run_is_graded(
    store: Store, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from eval_tasks.scoring import registry
    from tests.answered import answer_by_hand

    register(store, tmp_path / "benchmarks")
    made = planned(store, checkpoint)
    answer_by_hand(store, made)
    scorer = registry.find_scorer("gsm8k")

    def kinder(case: Any) -> list[Any]:
        return [replace(mark, value=1.0) for mark in scorer.function(case)]

    monkeypatch.setitem(registry._SCORERS, "gsm8k", replace(scorer, function=kinder))
    vector_file._digest.cache_clear()
    try:
        with pytest.raises(UserError, match=r"benchmark 'colour-sums' .* was registered with scorer gsm8k"):
            grade(store, run_id=made.run_id)
    finally:
        vector_file._digest.cache_clear()
    assert not store.scores.graders(made.run_id, store.catalog.benchmark("colour-sums").benchmark_id)


def test_other_rows_and_nothing_else_are_caught_by_the_night(nights: Nights) -> None:
    nights.run(1)
    nights.fault = nudged
    assert nights.run(2).status == "failed"
    (block,) = nights.store.catalog.open_blocks()
    assert block.kind == "rows_changed"
    assert not gate(nights.store, environment="one").open
