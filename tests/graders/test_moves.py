"""What moved when the same outputs were scored anew: totals, groups, flips, and what cannot be compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.errors import UserError
from eval_tasks.graders import keep_moves, moved_scores
from eval_tasks.graders.moves import earlier_grader
from eval_tasks.records import BenchmarkVersion, Run, Score
from eval_tasks.records.regrade import MovedScores
from eval_tasks.store import Store
from tests.answered import answered, checkpoint
from tests.planned import N_CHOICE, NOW

__all__ = ["answered", "checkpoint"]

Answered = Callable[..., str]


@pytest.fixture
def scored(store: Store, answered: Answered) -> tuple[Run, BenchmarkVersion]:
    """A run whose choice benchmark has two strata."""
    return store.catalog.run(answered()), store.catalog.benchmark("colours")


def values_of(store: Store, run: Run, benchmark: BenchmarkVersion) -> dict[str, float]:
    table = store.scores.read(run.run_id, benchmark.benchmark_id, metric=benchmark.primary_metric)
    return {row["item_id"]: row["value"] for row in table.to_pylist()}


def write(
    store: Store, run: Run, benchmark: BenchmarkVersion, grader: str, values: dict[str, float | None], **more: Any
) -> None:
    rows = [
        Score(
            benchmark_id=benchmark.benchmark_id,
            item_id=item_id,
            metric=benchmark.primary_metric,
            value=value,
            status="missing" if value is None else "ok",
            stratum="odd" if int(item_id[1:]) % 2 else "even",
            extracted="by-hand",
        )
        for item_id, value in values.items()
    ]
    store.scores.write(run.run_id, benchmark.benchmark_id, grader, rows)


def flip(values: dict[str, float], items: Sequence[str]) -> dict[str, float | None]:
    return {k: 1 - v if k in items else v for k, v in values.items()}


def test_a_move_has_both_scores_the_paired_difference_and_the_items_that_flipped(
    store: Store, scored: tuple[Run, BenchmarkVersion]
) -> None:
    run, benchmark = scored
    old = values_of(store, run, benchmark)
    right = sorted(k for k, v in old.items() if v == 1)[:6]
    wrong = sorted(k for k, v in old.items() if v == 0)[:2]
    write(store, run, benchmark, "choice@9+00000000", flip(old, [*right, *wrong]))
    moved = moved_scores(store, run, benchmark, "choice@9+00000000")
    total = moved.total
    assert moved.old_grader == store.scores.graders(run.run_id, benchmark.benchmark_id)[0]
    assert (total.lost, total.gained, total.n_pairs) == (6, 2, N_CHOICE)
    assert total.old == pytest.approx(sum(old.values()) / N_CHOICE)
    assert total.delta == pytest.approx(-4 / N_CHOICE) == pytest.approx((total.new or 0) - (total.old or 0))
    assert total.ci95 is not None and total.ci95[0] < total.delta < total.ci95[1]
    assert moved.p == pytest.approx(0.1796875)  # McNemar's mid-p of 6 and 2
    assert {(i.item_id, i.lost, i.extracted_a) for i in moved.flipped} == {
        *((k, True, "by-hand") for k in right),
        *((k, False, "by-hand") for k in wrong),
    }
    assert all(i.output_a == i.output_b for i in moved.flipped)
    assert moved.by == "stratum" and [g.group for g in moved.groups] == ["even", "odd"]
    assert sum(g.n_pairs for g in moved.groups) == N_CHOICE
    assert sum(g.lost or 0 for g in moved.groups) == 6
    assert not moved.not_compared


def test_without_an_answer_the_interval_is_wider_and_a_note_says_so(
    store: Store, scored: tuple[Run, BenchmarkVersion]
) -> None:
    run, benchmark = scored
    old = values_of(store, run, benchmark)
    lost = sorted(old)[:3]
    write(store, run, benchmark, "judge/j@1+0", {k: None if k in lost else v for k, v in old.items()})
    moved = moved_scores(store, run, benchmark, "judge/j@1+0")
    assert (moved.total.n_old, moved.total.n_new, moved.total.n_pairs) == (N_CHOICE, N_CHOICE - 3, N_CHOICE - 3)
    assert moved.total.delta == 0 and (moved.total.lost, moved.total.gained) == (0, 0)
    assert moved.notes == ("3 items have no score in an arm: the interval is widened to what they could be",)


def test_values_by_degrees_have_no_flips(store: Store, scored: tuple[Run, BenchmarkVersion]) -> None:
    run, benchmark = scored
    old = values_of(store, run, benchmark)
    write(store, run, benchmark, "judge/degrees@1+0", dict.fromkeys(old, 0.5))
    moved = moved_scores(store, run, benchmark, "judge/degrees@1+0")
    assert (moved.total.lost, moved.total.gained, moved.flipped) == (None, None, ())
    assert moved.total.delta == pytest.approx(0.5 - sum(old.values()) / N_CHOICE)


def test_a_version_is_held_against_the_one_before_it_and_others_against_the_scorer(
    store: Store, scored: tuple[Run, BenchmarkVersion]
) -> None:
    run, benchmark = scored
    old = {k: float(v) for k, v in values_of(store, run, benchmark).items()}
    scorer = store.scores.graders(run.run_id, benchmark.benchmark_id)[0]
    for grader in ("judge/j@1+a", "judge/k@1+b", "judge/j@2+c", "choice@9+d"):
        write(store, run, benchmark, grader, dict(old))

    def against(new: str) -> str:
        return earlier_grader(store, run.run_id, benchmark.benchmark_id, new)

    assert against(scorer) == ""
    assert against("judge/j@1+a") == "choice@9+d"
    assert against("judge/j@2+c") == "judge/j@1+a"
    assert against("choice@9+d") == scorer
    first = moved_scores(store, run, benchmark, scorer)
    assert (first.old_grader, first.not_compared) == ("", "nobody scored these outputs before")
    assert (first.total.old, first.total.n_old, first.total.delta) == (None, 0, None)
    assert moved_scores(store, run, benchmark, "judge/k@1+b", against="judge/j@2+c").total.delta == 0
    with pytest.raises(UserError, match="held against itself"):
        moved_scores(store, run, benchmark, scorer, against=scorer)
    with pytest.raises(UserError, match="no scores by grader 'judge/j@3'"):
        moved_scores(store, run, benchmark, scorer, against="judge/j@3")


def test_graders_of_other_items_are_not_compared(store: Store, scored: tuple[Run, BenchmarkVersion]) -> None:
    run, benchmark = scored
    ids = sorted(values_of(store, run, benchmark))
    write(store, run, benchmark, "human/a@1", dict.fromkeys(ids[:4], 1.0))
    write(store, run, benchmark, "human/b@1", dict.fromkeys(ids[4:9], 1.0))
    moved = moved_scores(store, run, benchmark, "human/b@1", against="human/a@1")
    assert moved.not_compared == "no item has scores by both graders"
    assert (moved.total.n_old, moved.total.n_new) == (4, 5)


def test_a_report_is_kept_once_however_often_it_is_made(store: Store, scored: tuple[Run, BenchmarkVersion]) -> None:
    run, benchmark = scored
    old = values_of(store, run, benchmark)
    write(store, run, benchmark, "judge/j@1+0", flip(old, sorted(old)[:3]))
    moved = [moved_scores(store, run, benchmark, "judge/j@1+0")]
    uri = keep_moves(store, run.run_id, moved, NOW)
    assert keep_moves(store, run.run_id, moved, "2027-01-01T00:00:00+00:00") == uri
    reports = {r.format: r.blob_digest for r in store.catalog.reports(run.run_id)}
    assert sorted(reports) == ["regrade-html", "regrade-json"] and len(store.catalog.reports(run.run_id)) == 2
    document = json.loads(store.blobs.get(reports["regrade-json"]))
    assert document["moved"][0]["total"]["n_pairs"] == N_CHOICE
    assert isinstance(moved[0], MovedScores) and Path(uri).exists()
