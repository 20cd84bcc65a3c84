"""Every number gets its companion where it was checked, and says so where it never was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from eval_tasks.guard import contract, guard
from eval_tasks.join_contamination import join_contamination
from eval_tasks.store import Store
from tests.answered import answered, checkpoint

__all__ = ["answered", "checkpoint"]

NOW = "2026-01-05T00:00:00+00:00"


@pytest.fixture
def run_id(answered, store: Store) -> str:
    """A graded run of a checkpoint that was trained on two corpora."""
    made: str = answered()
    trained = store.catalog.checkpoint(store.catalog.run(made).request.checkpoint_id)
    store.catalog.save_checkpoint(replace(trained, corpora=("web", "books")))
    return made


def check(store: Store, run_id: str, corpus: str, n_contaminated: int) -> None:
    """Record a check of the choice benchmark: its first items are in the corpus."""
    benchmark_id = store.catalog.run(run_id).request.benchmark_ids[0]
    rows = {f"c{n:03d}": "contaminated" if n < n_contaminated else "clean" for n in range(70)}
    store.catalog.save_contamination(benchmark_id, corpus, "13-gram", rows, NOW)


def test_a_checkpoint_without_corpora_was_never_checked(answered, store: Store) -> None:
    report = join_contamination(store, run_id=answered())
    assert report.checked == ()
    assert report.never_checked == ("colours", "colour-text", "colour-sums")
    measurements = store.catalog.measurements(report.run_id)
    assert {(m.contamination, m.companion) for m in measurements} == {("never checked", None)}


def test_a_benchmark_checked_against_some_of_the_corpora_only_was_never_checked(store: Store, run_id: str) -> None:
    check(store, run_id, "web", 7)
    assert join_contamination(store, run_id=run_id).checked == ()


def test_every_metric_gets_its_companion_over_all_corpora(store: Store, run_id: str) -> None:
    check(store, run_id, "web", 7)
    check(store, run_id, "books", 14)
    before = store.catalog.measurements(run_id)
    report = join_contamination(store, run_id=run_id)
    assert (report.checked, report.never_checked) == (("colours",), ("colour-text", "colour-sums"))
    after = store.catalog.measurements(run_id)
    assert [replace(m, companion=None, contamination="never checked") for m in after] == before
    for m in (m for m in after if m.benchmark == "colours"):
        assert m.companion is not None
        assert (m.companion.n, m.companion.n_contaminated, m.companion.n_not_checkable) == (56, 14, 0)
        assert m.contamination.startswith("20.0% of items in ")
        assert "checked 2026-01-05T" in m.contamination and m.contamination.endswith("rule 13-gram")
        assert m.companion.score is not None and m.score is not None
        assert m.companion.difference == pytest.approx(m.score - m.companion.score)
    assert join_contamination(store, run_id=run_id) == report
    assert store.catalog.measurements(run_id) == after


def test_what_is_not_checked_any_more_says_so(store: Store, run_id: str) -> None:
    check(store, run_id, "web", 7)
    check(store, run_id, "books", 14)
    before = store.catalog.measurements(run_id)
    join_contamination(store, run_id=run_id)
    assert store.catalog.measurements(run_id) != before
    trained = store.catalog.checkpoint(store.catalog.run(run_id).request.checkpoint_id)
    store.catalog.save_checkpoint(replace(trained, corpora=("web", "books", "code")))
    join_contamination(store, run_id=run_id)
    assert store.catalog.measurements(run_id) == before


def test_the_same_content_resolved_by_hand_takes_no_companion_away(store: Store, run_id: str) -> None:
    check(store, run_id, "web", 7)
    check(store, run_id, "books", 14)
    trained = store.catalog.checkpoint(store.catalog.run(run_id).request.checkpoint_id)
    store.catalog.save_checkpoint(replace(trained, training_run="adhoc", corpora=()))
    assert join_contamination(store, run_id=run_id).checked == ("colours",)


def test_guard_and_join_at_once_undo_nothing_of_each_other(
    store: Store, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(store, run_id, "web", 7)
    check(store, run_id, "books", 14)

    plain = contract.shards_part

    def join_meanwhile(_: Sequence[str]) -> contract.Part:
        join_contamination(store, run_id=run_id)
        return plain(["one environment", "another"])

    monkeypatch.setattr(contract, "shards_part", join_meanwhile)
    guard(store, run_id=run_id, now=NOW)
    acc = next(m for m in store.catalog.measurements(run_id) if m.benchmark == "colours")
    assert acc.companion is not None and acc.quarantined
