"""kill -9 of a pod, the triggerer, the scheduler and the pod API while a checkpoint is evaluated: same rows, once."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest

from checkpoint_eval.embedded import signal_program
from eval_tasks.grade import grade
from eval_tasks.plan import plan, plan_uri
from eval_tasks.records import EngineConfig
from eval_tasks.resolve import resolve
from eval_tasks.run import run_shard
from eval_tasks.settings import EnvironmentSpec, Limits, Settings
from eval_tasks.store import open_store
from tests.end_to_end.conftest import TRAINING_RUN, Installation
from tests.planned import NOW, register

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200)]


def undisturbed_rows(checkpoint: Path, home: Path) -> str:
    """Digest of the rows that one process gives, without Airflow, pods or faults."""
    with open_store(Settings(home=home)) as store:
        register(store, home / "benchmarks", max_tokens=150)
        resolved = resolve(store, checkpoint_uri=str(checkpoint), training_run="alone", step=1)
        made = plan(
            store,
            checkpoint=resolved,
            checkpoint_dir=checkpoint,
            suite="colours-all",
            environment=EnvironmentSpec(name="local"),
            limits=Limits(),
            engine=EngineConfig(prefix="shared"),
            now=NOW,
        )
        uri = plan_uri(store, made)
        for shard in made.shards:
            run_shard(store, plan_uri=uri, shard=shard.shard, owner="alone", cache_dir=home / "cache")
        grade(store, run_id=made.run_id)
        return store.responses.run_rows_digest(made.run_id)


def pods_of(installation: Installation) -> list[psutil.Process]:
    """Worker processes of this installation's pods."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if "run-shard" in command and any(str(installation.home) in part for part in command):
            found.append(process)
    return found


def test_killed_pod_triggerer_scheduler_and_pod_api_lose_and_double_nothing(
    supervised: Installation, checkpoint: Path, tmp_path: Path
) -> None:
    supervised.land(1, checkpoint)
    victim = supervised.wait(lambda: pods_of(supervised), "running pod", 400)[0]
    victim.send_signal(signal.SIGKILL)
    for program in ("triggerer", "pods", "scheduler"):
        signal_program(supervised.home, program)
    supervised.wait(lambda: supervised.finished("evaluate_health", 1), "health evaluation", 600)
    supervised.wait(lambda: supervised.finished("evaluate_selection", 1), "selection evaluation", 600)
    runs = supervised.store.catalog.runs(training_run=TRAINING_RUN)
    assert [run.status for run in runs] == ["closed"], "health and selection ask for the same: one run"
    assert len(supervised.airflow.dag_runs("evaluate_health")) == 1
    assert len(supervised.airflow.dag_runs("evaluate_selection")) == 1
    expected = undisturbed_rows(checkpoint, tmp_path / "alone")
    assert supervised.store.responses.run_rows_digest(runs[0].run_id) == expected
    assert not pods_of(supervised)
