"""A backfill of `regrade` beside a live `airflow standalone`: stored runs under a judge, and nothing twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from checkpoint_eval.embedded import down
from eval_tasks.aggregate import aggregate
from eval_tasks.grade import grade
from tests.answered import answer_by_hand
from tests.end_to_end.installation import Installation, start
from tests.graders.judged import register as register_judge
from tests.graders.judged import write_judge
from tests.planned import N_GENERATED, NOW, planned, write_checkpoint

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

N_RUNS = 2
WINDOW = (NOW, (datetime.fromisoformat(NOW) + timedelta(days=1)).astimezone(UTC).isoformat())


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    home = tmp_path_factory.mktemp("regrade") / "home"
    try:
        found = start(home, standalone=True)
        yield found
        found.store.close()
    finally:
        down(home)


@pytest.fixture(scope="module")
def stored(installation: Installation, checkpoint: Path) -> list[str]:
    """Ids of evaluations that are there already: no model ran for them."""
    found = []
    for repeat in range(N_RUNS):
        made = planned(installation.store, checkpoint, repeat=repeat)
        answer_by_hand(installation.store, made)
        grade(installation.store, run_id=made.run_id)
        aggregate(installation.store, made.run_id)
        found.append(made.run_id)
    return found


def backfill(installation: Installation, conf: dict[str, str], reprocess: str = "completed") -> dict[str, str]:
    """Start it over the window and wait for its end: the states of all DAG runs of `regrade` there then are."""
    backfill_id = installation.airflow.backfill("regrade", *WINDOW, conf, reprocess)
    installation.wait(lambda: installation.airflow.backfill_ended(backfill_id), f"end of backfill {conf}", 600)
    return installation.airflow.dag_runs("regrade")


def test_a_window_is_regraded_once_by_a_judge_and_by_a_scorer(
    installation: Installation, stored: list[str], tmp_path: Path
) -> None:
    store = installation.store
    benchmark_id = store.catalog.benchmark("colour-sums").benchmark_id
    judge = register_judge(store, write_judge(tmp_path, write_checkpoint(tmp_path / "judge", seed=7))).grader
    rows = {run_id: store.responses.run_rows_digest(run_id) for run_id in stored}
    numbers = {run_id: store.catalog.measurements(run_id) for run_id in stored}

    first = backfill(installation, {"grader": "helpful"})
    assert len(first) == N_RUNS and set(first.values()) == {"success"}
    assert {run_id.split("__")[1] for run_id in first} == set(stored)
    for run_id in stored:
        assert store.scores.graders(run_id, benchmark_id)[1:] == [judge]
        assert store.catalog.measurements(run_id) == numbers[run_id]
        report = next(r for r in store.catalog.reports(run_id) if r.format == "regrade-json")
        [moved] = json.loads(store.blobs.get(report.blob_digest))["moved"]
        assert (moved["new_grader"], moved["total"]["n_new"]) == (judge, N_GENERATED)
    judging = {run.run_id for run in store.catalog.runs(judging=True)}
    assert len(judging) == N_RUNS

    second = backfill(installation, {"grader": "helpful"})
    assert len(second) == 2 * N_RUNS and set(second.values()) == {"success"}
    for run_id in set(second) - set(first):
        tasks = installation.airflow.task_instances("regrade", run_id)
        assert {t["state"] for t in tasks if t["task_id"].endswith("run_shard")} == {"skipped"}
        assert next(t["state"] for t in tasks if t["task_id"] == "report") == "success"
    assert {run.run_id for run in store.catalog.runs(judging=True)} == judging

    third = backfill(installation, {"grader": "regex", "benchmark": "colour-sums"})
    assert len(third) == 3 * N_RUNS and set(third.values()) == {"success"}
    assert backfill(installation, {"grader": "own"}, "none").keys() == third.keys()
    for run_id in stored:
        graders = store.scores.graders(run_id, benchmark_id)
        assert [grader.split("@")[0] for grader in graders] == ["gsm8k", "judge/helpful", "rule/regex"]
        assert store.responses.run_rows_digest(run_id) == rows[run_id]
