"""Which health evaluations a backlog skips; rows are values, and nothing is skipped unless it was asked for."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_tasks.checkpoint import coalesce, dag_run_id, may_start
from eval_tasks.records import Landing
from eval_tasks.settings import TierPolicy, TrainingRun
from tests.checkpoint.test_ledger import START, Row


def run(limit: int | None) -> TrainingRun:
    return TrainingRun(name="tiny", uri="/runs/tiny", health=TierPolicy(suite="h", coalesce_beyond=limit))


def row(step: int, state: str = "ready", *, selection: bool = False, age: float = 0, finished: bool = False) -> Row:
    landing = Landing(training_run="tiny", step=step, uri=f"/runs/tiny/step-{step}", listing=())
    health = dag_run_id("health", landing)
    moment = (START - timedelta(hours=age)).isoformat()
    return Row(
        landing=landing,
        state=state,
        reason="",
        first_seen_at=moment,
        place_first_seen_at=moment,
        changed_at=moment,
        dag_runs=(health, dag_run_id("selection", landing)) if selection else (health,),
        finished=(health,) if finished else (),
    )


def skipped(limit: int | None, *rows: Row) -> list[int]:
    return [change.landing.step for change in coalesce(run(limit), rows, START)]


def test_without_being_asked_nothing_is_skipped() -> None:
    assert skipped(None, *(row(step) for step in range(500))) == []
    assert may_start(run(None), [row(step, "dispatched") for step in range(500)], START)


def test_a_small_backlog_is_evaluated_whole_and_in_order() -> None:
    assert skipped(3, row(1), row(2), row(3)) == []
    assert skipped(3, row(1, "dispatched"), row(2), row(3)) == []


def test_of_a_large_one_the_latest_stay() -> None:
    assert skipped(2, row(3), row(1), row(2), row(4)) == [1, 2]
    assert skipped(2, row(1, "dispatched"), row(2), row(3), row(4)) == [2, 3]


def test_the_newest_is_never_skipped_and_waits_for_room() -> None:
    rows = [row(1, "dispatched"), row(2, "dispatched"), row(3), row(4)]
    assert skipped(2, *rows) == [3]
    assert not may_start(run(2), rows, START)
    rows[0] = row(1, "dispatched", finished=True)
    assert may_start(run(2), rows, START)


def test_one_that_hangs_since_yesterday_holds_up_nothing() -> None:
    rows = [row(1, "dispatched", age=25), row(2, "dispatched", age=1), row(3)]
    assert skipped(2, *rows) == []
    assert may_start(run(2), rows, START)


def test_a_skipped_one_says_why_and_keeps_its_selection_evaluation() -> None:
    old, both, new = row(1), row(2, selection=True), row(3)
    first, second = coalesce(run(1), [old, both, new], START)
    assert (first.state, first.dag_runs, first.skipped) == ("skipped", (), old.dag_runs)
    assert first.reason == "skipped on purpose: 3 health evaluations waited or ran, more than 1"
    assert (second.state, second.dag_runs) == ("ready", (dag_run_id("selection", both.landing),))
    assert second.skipped == (dag_run_id("health", both.landing),)


@pytest.mark.parametrize("state", ["waiting", "broken", "gone", "skipped"])
def test_what_was_not_ready_is_no_backlog(state: str) -> None:
    rows = [row(1, state), row(2, state), row(3)]
    assert skipped(1, *rows) == []


@given(
    limit=st.integers(1, 5),
    states=st.lists(st.sampled_from(["ready", "dispatched", "waiting"]), max_size=15),
)
def test_after_coalescing_what_waits_fits_or_is_the_newest(limit: int, states: list[str]) -> None:
    rows = [row(step, state) for step, state in enumerate(states)]
    gone = set(skipped(limit, *rows))
    left = [r.landing.step for r in rows if r.state == "ready" and r.landing.step not in gone]
    under_way = states.count("dispatched")
    assert len(left) <= max(1, limit - under_way) or not gone
    assert all(step < min(left) for step in gone)
    assert bool(left) == ("ready" in states)
