"""Measurements, guard reports, comparisons and published reports."""

from __future__ import annotations

import threading
from dataclasses import replace
from math import nan
from typing import Any

import pytest
from alembic import command
from sqlalchemy import inspect

from eval_tasks.errors import DataError, UserError
from eval_tasks.records import (
    Companion,
    Comparison,
    DecisionRule,
    Excursion,
    GuardReport,
    Measurement,
    PairedTest,
    PastPairs,
    SampleOutput,
)
from eval_tasks.records.engine import MOCK_MARK
from eval_tasks.settings import Settings
from eval_tasks.store import Store, open_store, schema
from eval_tasks.store.database import Database
from tests.store.samples import run

RUN = run(1).run_id
MEASUREMENT = Measurement(
    run_id=RUN,
    benchmark_id="b" * 32,
    benchmark="colours",
    version="1",
    metric="acc",
    primary=True,
    score=0.1 + 0.2,
    n=3,
    n_attempted=4,
    se=1e-300,
    ci95=(0.0, 1 / 3),
    ci95_method="wilson",
    companion=Companion(
        score=None, n=0, se=None, ci95=None, n_contaminated=3, n_not_checkable=0, difference=None, difference_se=None
    ),
)
TEST = PairedTest(
    benchmark="colours",
    metric="acc",
    compatibility="SCORE",
    method="mcnemar_mid_p",
    n_pairs=3,
    n_attempted=3,
    score_a=1.0,
    score_b=0.5,
    delta=0.5,
    se=0.1,
    ci95=(0.3, 0.7),
    p=0.01,
    b=2,
    c=0,
    n_discordant=2,
    verdict="A better",
)
COMPARISON = Comparison(
    run_a=RUN, run_b="2" * 32, label_a="A", label_b="B", tests=(TEST,), n_expected_by_chance=0.05, alpha=0.05
)


@pytest.fixture(autouse=True)
def _a_run(store: Store) -> None:
    store.catalog.create_run(run(1))


def test_measurements_come_back_bit_for_bit_in_their_order_and_are_replaced(store: Store) -> None:
    rows = [MEASUREMENT, replace(MEASUREMENT, metric="acc_norm", primary=False, companion=None)]
    store.catalog.save_measurements(RUN, rows)
    assert store.catalog.measurements(RUN) == rows
    store.catalog.save_measurements(RUN, rows[1:])
    assert store.catalog.measurements(RUN) == rows[1:]


def test_two_steps_at_once_undo_nothing_of_each_other(store: Store, settings: Settings) -> None:
    store.catalog.save_measurements(RUN, [replace(MEASUREMENT, companion=None, quarantined=False)])
    both_begin = threading.Barrier(2, timeout=10)
    changes: list[dict[str, Any]] = [
        {"companion": MEASUREMENT.companion},
        {"quarantined": True, "quarantine_reason": "below chance"},
    ]

    def step(change: dict[str, Any]) -> None:
        with open_store(settings) as own:
            both_begin.wait()
            own.catalog.change_measurements(RUN, lambda rows: [replace(row, **change) for row in rows])

    steps = [threading.Thread(target=step, args=(change,)) for change in changes]
    for thread in steps:
        thread.start()
    for thread in steps:
        thread.join()
    (found,) = store.catalog.measurements(RUN)
    assert (found.companion, found.quarantined) == (MEASUREMENT.companion, True)


def test_what_is_not_a_number_cannot_be_a_score(store: Store) -> None:
    store.catalog.save_measurements(RUN, [MEASUREMENT])
    with pytest.raises(DataError, match="Measurement cannot be stored"):
        store.catalog.save_measurements(RUN, [replace(MEASUREMENT, score=nan)])
    assert store.catalog.measurements(RUN) == [MEASUREMENT]


def test_a_guard_report_comes_back_with_its_samples(store: Store) -> None:
    assert store.catalog.guard(RUN) is None
    sample = SampleOutput(item_id="a", status="ok", prompt_tail="…?", output="A\ud800\x00", extracted=None, gold="B")
    excursion = Excursion(
        benchmark_id="b",
        benchmark="colours",
        metric="acc",
        check="range",
        observed="0",
        expected="0.2",
        samples=(sample,),
    )
    report = GuardReport(run_id=RUN, passed=False, checks={"rows": "3 of 3"}, excursions=(excursion,))
    store.catalog.save_guard(report)
    shown = replace(excursion, samples=(replace(sample, output="A\ufffd\x00"),))
    assert store.catalog.guard(RUN) == replace(report, excursions=(shown,))
    passed = GuardReport(run_id=RUN, passed=True, checks={})
    store.catalog.save_guard(passed)
    assert store.catalog.guard(RUN) == passed


def test_comparisons_come_back_by_id_and_by_either_run(store: Store) -> None:
    rule = DecisionRule(name="ship", kind="superiority", metric="acc", components={"colours": 1.0})
    ruled = replace(COMPARISON, rule=rule, exploratory=False, verdict="A better")
    elsewhere = replace(COMPARISON, run_a="3" * 32)
    for comparison in (COMPARISON, ruled, elsewhere):
        store.catalog.save_comparison(comparison)
    assert store.catalog.comparison(ruled.comparison_id) == ruled
    assert store.catalog.comparisons() == [elsewhere, ruled, COMPARISON]
    assert store.catalog.comparisons(RUN) == [ruled, COMPARISON]
    assert store.catalog.comparisons("2" * 32) == [elsewhere, ruled, COMPARISON]
    store.catalog.save_comparison(replace(COMPARISON, reason="again"))
    assert len(store.catalog.comparisons()) == 3
    assert store.catalog.comparison(COMPARISON.comparison_id).reason == "again"


def test_reports_of_a_run_newest_first(store: Store) -> None:
    store.catalog.save_report(RUN, "1" * 64, "json", "2026-01-01T00:00:00+00:00")
    store.catalog.save_report(RUN, "2" * 64, "html", "2026-01-02T00:00:00+00:00")
    store.catalog.save_report(RUN, "1" * 64, "json", "2026-01-03T00:00:00+00:00")
    assert [(r.blob_digest[0], r.format, r.created_at[:10]) for r in store.catalog.reports(RUN)] == [
        ("1", "json", "2026-01-03"),
        ("2", "html", "2026-01-02"),
    ]


def test_nothing_is_kept_for_a_run_that_is_not_there(store: Store) -> None:
    for save in (
        lambda: store.catalog.save_measurements("x", [MEASUREMENT]),
        lambda: store.catalog.save_guard(GuardReport(run_id="x", passed=True, checks={})),
        lambda: store.catalog.save_report("x", "1" * 64, "json", "2026-01-01T00:00:00+00:00"),
    ):
        with pytest.raises(UserError, match="no run 'x'"):
            save()
    assert store.catalog.measurements("x") == []
    assert store.catalog.reports("x") == []
    with pytest.raises(UserError, match="no comparison 'x'"):
        store.catalog.comparison("x")


def test_past_pairs_are_sums_over_pairs_of_runs(store: Store) -> None:
    assert store.catalog.past_pairs([]) == {} == store.catalog.past_pairs(["colours"])
    comparison = Comparison(
        run_a="a", run_b="b", label_a="a", label_b="b", tests=(TEST,), n_expected_by_chance=0.0, alpha=0.05
    )
    store.catalog.save_comparison(comparison)
    larger = replace(TEST, n_pairs=7, n_discordant=3, se=0.2)
    store.catalog.save_comparison(replace(comparison, run_b="c", tests=(larger,)))
    for nothing_learnt in (
        replace(comparison, run_b="a"),
        replace(comparison, run_b="d", further_a=("e",)),
        replace(comparison, run_b="d", tests=(replace(TEST, notes=(MOCK_MARK,)),)),
        replace(comparison, run_b="d", tests=(replace(TEST, not_tested="quarantined"),)),
    ):
        store.catalog.save_comparison(nothing_learnt)
    loss = replace(TEST, metric="bits", n_discordant=None, b=None, c=None)
    store.catalog.save_comparison(replace(comparison, run_b="f", tests=(loss,)))
    found = store.catalog.past_pairs(["colours", "other"])
    assert found["colours", "acc"] == PastPairs(
        n_comparisons=2,
        n_pairs=10,
        n_discordant=5,
        n_spread=2,
        n_spread_pairs=10,
        variance=pytest.approx((3 * 3 * 0.01 + 7 * 7 * 0.04) / 10),
    )
    assert (found["colours", "bits"].n_pairs, found["colours", "bits"].n_spread_pairs) == (0, 3)
    assert len(found) == 2


def test_a_catalog_of_an_earlier_release_learns_from_its_comparisons(settings: Settings) -> None:
    with open_store(settings) as store:
        comparison = Comparison(
            run_a="a", run_b="b", label_a="a", label_b="b", tests=(TEST,), n_expected_by_chance=0.0, alpha=0.05
        )
        store.catalog.save_comparison(comparison)
        store.catalog.save_comparison(replace(comparison, run_b="a"))
        before = store.catalog.past_pairs(["colours"])
    own = next(revision for revision in schema._scripts().walk_revisions() if "discordances" in revision.path)

    def downgrade(connection: object) -> None:
        config = schema._config()
        config.attributes["connection"] = connection
        command.downgrade(config, str(own.down_revision))

    database = Database(settings.catalog_url)
    database.write(downgrade)
    assert "discordances" not in database.read(lambda c: inspect(c).get_table_names())
    database.close()
    with open_store(settings) as store:
        assert store.catalog.past_pairs(["colours"]) == before != {}
