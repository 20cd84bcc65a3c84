"""A number beside the training run's own earlier ones, each check at its limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.aggregate import aggregate
from eval_tasks.grade import grade
from eval_tasks.guard import guard
from eval_tasks.guard.history import LOOKS, check_history, earlier_numbers
from eval_tasks.records import Measurement
from eval_tasks.store import Store
from tests.answered import answer_by_hand, right
from tests.guard.test_plausibility import measurement
from tests.planned import NOW, planned, register, write_checkpoint
from tests.store.samples import benchmark


def looked(*scores: float, se: float = 0.01) -> list[Measurement]:
    return [measurement(score=score, se=se) for score in scores]


def checks(now: float, *before: float, se: float = 0.01, **changes: Any) -> list[str]:
    m = measurement(score=now, se=se, ci95=(now - 2 * se, now + 2 * se))
    found = check_history(m, benchmark(chance_level=0.25, **changes), looked(*before, se=se))
    return [breach.check for breach in found]


def test_a_number_without_a_past_is_plausible() -> None:
    assert checks(0.0, plausible_change={"acc": 0.01}) == []


@pytest.mark.parametrize(("now", "sound"), [(0.7, True), (0.7001, False), (0.5, True), (0.4999, False)])
def test_the_plausible_change_is_held_against_the_median_both_ways(now: float, sound: bool) -> None:
    found = checks(now, 0.1, 0.6, 0.6, 0.6, 0.9, plausible_change={"acc": 0.1000001})
    assert found == ([] if sound else ["history_range"])


def test_a_metric_without_a_declared_change_may_jump() -> None:
    assert checks(0.95, 0.5) == []


def test_a_score_that_was_above_chance_and_is_at_it_is_an_excursion() -> None:
    (breach,) = check_history(
        measurement(score=0.26, se=0.01, ci95=(0.24, 0.28)), benchmark(chance_level=0.25), looked(0.5, 0.52)
    )
    assert (breach.check, breach.observed) == ("at_chance", "0.2600, and 0.5100 at the looks before")
    assert checks(0.1, 0.5) == ["at_chance"]


@pytest.mark.parametrize(
    ("now", "before", "why"),
    [
        (0.28, 0.50, "its interval lies above chance"),
        (0.26, 0.275, "it was not clearly above chance"),
        (0.265, 0.285, "the drop may be noise"),
        (0.45, 0.60, "a regression is a number"),
    ],
)
def test_what_is_not_at_chance(now: float, before: float, why: str) -> None:
    assert checks(now, before) == [], why


def test_no_chance_level_and_no_second_metric_says_anything() -> None:
    m = measurement(score=0.2, se=0.01, ci95=(0.18, 0.22))
    assert check_history(m, benchmark(), looked(0.6)) == []
    assert check_history(replace(m, primary=False), benchmark(chance_level=0.25), looked(0.6)) == []


@pytest.fixture
def evaluate(store: Store, tmp_path: Path) -> Callable[..., str]:
    """`evaluate(step, share)`: a run of the training run whose choice items are right in that share, and guarded."""
    register(store, tmp_path / "benchmarks", chance_level=0.25, plausible_change={"acc_norm": 0.5})

    def run(step: int, share: float) -> str:
        plan = planned(store, write_checkpoint(tmp_path / f"step-{step}", seed=step), step=step)
        answer_by_hand(store, plan, right(share))
        grade(store, run_id=plan.run_id)
        aggregate(store, plan.run_id)
        guard(store, run_id=plan.run_id, now=NOW, validator="built_in")
        return plan.run_id

    return run


def test_a_parser_that_broke_is_quarantined_beside_its_own_past(store: Store, evaluate: Callable[..., str]) -> None:
    for step in (1, 2, 3):
        assert store.catalog.guard(evaluate(step, 0.9)).passed  # type: ignore[union-attr]
    broken = evaluate(4, 0.2)
    report = store.catalog.guard(broken)
    assert report is not None and not report.passed
    assert report.checks["at_chance"].startswith("failed on colours acc: 0.2")
    assert report.checks["history_range"].startswith("failed on colours acc_norm: ")
    quarantined = {(m.benchmark, m.metric) for m in store.catalog.measurements(broken) if m.quarantined}
    assert quarantined == {("colours", "acc"), ("colours", "acc_norm")}
    (alert,) = store.catalog.alerts()
    assert alert.title == f"colours acc, acc_norm quarantined in run {broken[:12]}: at_chance, history_range"
    assert "tiny step 4, selection tier, suite colours-all@1" in alert.body
    assert alert.body.count("gold: ") == 5
    # A quarantined number is no past: what comes next is held against the sound looks, and a repeat finds the same.
    assert store.catalog.guard(evaluate(5, 0.2)).checks["at_chance"].startswith("failed")  # type: ignore[union-attr]
    assert guard(store, run_id=broken, now=NOW, validator="built_in") == report


def test_the_past_is_the_last_looks_of_lower_steps(store: Store, evaluate: Callable[..., str]) -> None:
    ids = {step: evaluate(step, 0.9) for step in (*range(1, LOOKS + 4), 30)}
    run = store.catalog.run(ids[LOOKS + 3])
    version = store.catalog.benchmark("colours")
    (m,) = [m for m in store.catalog.measurements(run.run_id) if m.benchmark == "colours" and m.primary]
    found = earlier_numbers(store, run, version, "acc", m.grader)
    assert [e.run_id for e in found] == [ids[step] for step in range(3, LOOKS + 3)]
    assert earlier_numbers(store, run, version, "acc", "another@1") == []
    assert earlier_numbers(store, replace(run, training_run="adhoc"), version, "acc", m.grader) == []
