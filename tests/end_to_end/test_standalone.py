"""A checkpoint lands beside a live `airflow standalone`, and ends in a verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.conftest import TRAINING_RUN, Installation

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


def test_landed_checkpoints_are_evaluated_in_step_order_and_end_in_a_verdict(
    standalone: Installation, checkpoint: Path
) -> None:
    standalone.land(10, checkpoint)
    standalone.land(9, checkpoint, pause_seconds=3)
    standalone.wait(lambda: standalone.finished("evaluate_health", 2), "two health evaluations", 600)
    standalone.wait(lambda: standalone.finished("evaluate_selection", 1), "a selection evaluation")
    rows = standalone.store.catalog.landings(training_run=TRAINING_RUN)
    assert {row.landing.step: row.state for row in rows if row.dag_runs} == {9: "dispatched", 10: "dispatched"}
    assert sorted(run for row in rows for run in row.dag_runs) == sorted(
        [*standalone.airflow.dag_runs("evaluate_health"), *standalone.airflow.dag_runs("evaluate_selection")]
    )
    closed = standalone.store.catalog.runs(training_run=TRAINING_RUN, status="closed")
    assert closed
    for run in closed:
        assert standalone.store.catalog.measurements(run.run_id)
        assert {report.format for report in standalone.store.catalog.reports(run.run_id)} == {"html", "json"}


def test_the_same_weights_at_another_step_are_indistinguishable(standalone: Installation, checkpoint: Path) -> None:
    standalone.land(11, checkpoint)
    standalone.wait(lambda: standalone.finished("evaluate_selection", 2), "a second selection evaluation", 600)
    comparisons = standalone.store.catalog.comparisons()
    assert comparisons
    assert all(c.verdict in (None, "INDISTINGUISHABLE") for c in comparisons)


def test_a_broken_checkpoint_raises_one_alert_and_holds_up_nobody(standalone: Installation, checkpoint: Path) -> None:
    before = len(standalone.airflow.dag_runs("evaluate_health"))
    folder = standalone.land(20, checkpoint)
    weights = folder / "model.safetensors"
    weights.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "utf-8")
    standalone.land(21, checkpoint)
    standalone.wait(lambda: standalone.finished("evaluate_health", before + 1), "the evaluation of step 21", 600)
    alerts = [alert for alert in standalone.store.catalog.alerts() if "step-20" in alert.title + alert.body]
    assert len(alerts) == 1
    assert "pointer" in alerts[0].title + alerts[0].body
