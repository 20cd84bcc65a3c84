"""A night beside a live `airflow standalone`: other rows than the baseline hold evaluation until a person explains."""

from __future__ import annotations

import urllib.error
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from eval_tasks.determinism import judge_night, plan_night
from eval_tasks.records import SentinelReport
from eval_tasks.settings import load_config
from tests.answered import answer_by_hand
from tests.end_to_end.installation import TRAINING_RUN, Installation
from tests.planned import write_checkpoint

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200)]


def stand_for_the_past(installation: Installation, fingerprint: str) -> None:
    """A baseline of the machine's own fingerprint whose rows are not the engine's: what a drift looks like."""
    store, now = installation.store, datetime.now(UTC).isoformat(timespec="seconds")
    config = load_config(installation.home / "config.yaml")
    planned = plan_night(
        store, config=config, environment="local", night="before", cache_dir=installation.home / "cache", now=now
    )
    for run_id, uri in (
        (planned.run_id, planned.plan_uri),
        (planned.perturbed_run_id, planned.perturbed_plan_uri),
    ):
        answer_by_hand(store, store.plan(uri))
        store.catalog.pin_environment(run_id, fingerprint)
    store.catalog.save_sentinels(SentinelReport(run_id=planned.run_id, env_fingerprint=fingerprint, node="", checks=()))
    assert judge_night(store, planned, policy=config.nightly(), now=now).status == "adopted"


def test_other_rows_hold_evaluation_until_a_person_explains_them(standalone: Installation, checkpoint: Path) -> None:
    standalone.land(1, checkpoint)
    standalone.wait(lambda: standalone.finished("evaluate_health", 1), "a health evaluation", 600)
    fingerprint = standalone.store.catalog.runs(training_run=TRAINING_RUN)[0].env_fingerprint
    assert fingerprint
    write_checkpoint(standalone.home / "fixed", seed=3)
    stand_for_the_past(standalone, fingerprint)

    night = standalone.airflow.trigger("determinism_nightly", {})
    standalone.wait(standalone.store.catalog.open_blocks, "a block", 900)
    (block,) = standalone.store.catalog.open_blocks()
    assert (block.kind, block.fingerprint, block.environment) == ("rows_changed", fingerprint, "local")
    asked = f"block__{block.block_id}"
    standalone.wait(lambda: state(standalone, "explain_block", asked, "ask") == "awaiting_input", "a question")

    standalone.land(2, write_checkpoint(standalone.home / "second", seed=4))
    held = standalone.wait(
        lambda: [r for r, s in standalone.airflow.dag_runs("evaluate_health").items() if s == "running"], "evaluation"
    )[0]
    standalone.wait(
        lambda: state(standalone, "evaluate_health", held, "gate") == "up_for_reschedule", "an evaluation at its gate"
    )
    standalone.airflow.answer("explain_block", asked, "ask", "baseline adopted", reason=" ")
    standalone.wait(lambda: unanswered(standalone, asked), "the question once more")
    assert standalone.store.catalog.block(block.block_id).explained_at is None

    def explained() -> bool:
        if unanswered(standalone, asked):
            with suppress(urllib.error.HTTPError):  # answered, and not taken up yet
                standalone.airflow.answer("explain_block", asked, "ask", "baseline adopted", reason="rows by hand")
        return standalone.airflow.dag_runs("explain_block")[asked] == "success"

    standalone.wait(explained, "an explanation")
    found = standalone.store.catalog.block(block.block_id)
    assert (found.explained_by, found.explanation, found.outcome) == ("admin", "rows by hand", "baseline adopted")
    adopted = standalone.store.catalog.baselines(status="adopted")
    assert block.run_id in {baseline.run_id for baseline in adopted}
    standalone.wait(lambda: standalone.finished("evaluate_health", 2), "the evaluation that waited", 600)

    assert standalone.airflow.dag_runs("determinism_nightly")[night] == "failed"
    states = {t["task_id"]: t["state"] for t in standalone.airflow.task_instances("determinism_nightly", night)}
    assert (states["judge"], states["verdict"], states["ask_about_blocks"]) == ("success", "failed", "success")
    alerts = standalone.store.catalog.alerts()
    assert [alert.kind for alert in alerts].count("determinism_block") == 1
    # The night that Airflow began by itself had no checkpoint yet, and says so once; this one is told by its block.
    assert [alert.kind for alert in alerts if night in alert.body] == []


def state(installation: Installation, dag_id: str, run_id: str, task_id: str) -> str:
    if run_id not in installation.airflow.dag_runs(dag_id):
        return ""
    tasks = {t["task_id"]: str(t["state"]) for t in installation.airflow.task_instances(dag_id, run_id)}
    return tasks.get(task_id, "")


def unanswered(installation: Installation, run_id: str) -> bool:
    """Whether the question waits for an answer."""
    waits = state(installation, "explain_block", run_id, "ask") == "awaiting_input"
    return waits and not installation.airflow.answered("explain_block", run_id, "ask")
