"""kill -9 of a pod, the triggerer, the scheduler and the pod API while a checkpoint is evaluated: same rows, once."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from checkpoint_eval.embedded import signal_program
from tests.end_to_end.installation import TRAINING_RUN, Installation
from tests.end_to_end.undisturbed import Outcome, undisturbed

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200)]


def test_killed_pod_triggerer_scheduler_and_pod_api_lose_and_double_nothing(
    supervised: Installation, checkpoint: Path, tmp_path: Path
) -> None:
    supervised.land(1, checkpoint)
    victim = supervised.wait(lambda: supervised.pods(), "running pod", 400)[0]
    victim.send_signal(signal.SIGKILL)
    for program in ("triggerer", "pods", "scheduler"):
        signal_program(supervised.home, program)
    supervised.wait(lambda: supervised.finished("evaluate_health", 1), "health evaluation", 600)
    supervised.wait(lambda: supervised.finished("evaluate_selection", 1), "selection evaluation", 600)
    runs = supervised.store.catalog.runs(training_run=TRAINING_RUN)
    assert [run.status for run in runs] == ["closed"], "health and selection ask for the same: one run"
    assert len(supervised.airflow.dag_runs("evaluate_health")) == 1
    assert len(supervised.airflow.dag_runs("evaluate_selection")) == 1
    assert Outcome.of(supervised.store, runs[0].run_id) == undisturbed(checkpoint, tmp_path / "alone")
    assert not supervised.pods()
