"""The guard step on a stored run: what is quarantined, what is said, and that nothing is said twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eval_tasks.errors import DataError
from eval_tasks.guard import guard
from eval_tasks.guard.contract import BUILT_IN
from eval_tasks.guard.step import CHECKS
from eval_tasks.records import ContractReport, GuardReport, from_json
from eval_tasks.store import Store
from tests.planned import NOW

Answered = Callable[..., str]


def quarantined(store: Store, run_id: str) -> set[tuple[str, str]]:
    return {(m.benchmark, m.metric) for m in store.catalog.measurements(run_id) if m.quarantined}


def test_sound_rows_pass_every_check_by_name(store: Store, answered: Answered) -> None:
    run_id = answered()
    report = guard(store, run_id=run_id, now=NOW)
    assert report == GuardReport(
        run_id=run_id,
        passed=True,
        checks=dict.fromkeys(CHECKS, "passed"),
        contract_blob=report.contract_blob,
    )
    assert store.catalog.guard(run_id) == report
    assert quarantined(store, run_id) == set()
    assert store.catalog.alerts() == []


def test_the_contract_is_kept_clause_by_clause_and_the_same_each_time(store: Store, answered: Answered) -> None:
    run_id = answered()
    report = guard(store, run_id=run_id, now=NOW)
    kept = from_json(ContractReport, store.blobs.get_json(report.contract_blob))
    assert kept.by.startswith("great_expectations 1.")
    assert all(result.passed for result in kept.results)
    assert [(r.part, r.check) for r in kept.results if r.benchmark == "colours"] == [
        ("rows", "row_count"),
        ("rows", "unique_ids"),
        ("rows", "status_explained"),
        ("rows", "finite_logprobs"),
        ("scores of acc", "one_grader_row_per_item"),
        ("scores of acc", "score_range"),
        ("scores of acc_norm", "one_grader_row_per_item"),
        ("scores of acc_norm", "score_range"),
    ]
    assert [(r.part, r.check) for r in kept.results if not r.benchmark] == [("shards", "one_environment")]
    assert guard(store, run_id=run_id, now=NOW).contract_blob == report.contract_blob
    built_in = guard(store, run_id=run_id, now=NOW, validator="built_in")
    ours = from_json(ContractReport, store.blobs.get_json(built_in.contract_blob))
    assert (ours.by, ours.results) == (BUILT_IN, kept.results)


def test_a_number_out_of_range_is_quarantined_alone_with_five_outputs(store: Store, answered: Answered) -> None:
    run_id = answered(plausible_range={"acc": [0.9, 1.0]})
    report = guard(store, run_id=run_id, now=NOW)
    (excursion,) = report.excursions
    assert not report.passed
    assert (excursion.benchmark, excursion.metric, excursion.check) == ("colours", "acc", "plausible_range")
    assert len({sample.item_id for sample in excursion.samples}) == 5
    assert quarantined(store, run_id) == {("colours", "acc")}
    (number,) = (m for m in store.catalog.measurements(run_id) if m.quarantined)
    assert number.quarantine_reason == f"plausible_range: {number.score:.4f}, expected 0.9 to 1"
    assert report.checks["plausible_range"].startswith("failed on colours acc: ")


def test_the_alert_carries_the_five_outputs_once(store: Store, answered: Answered) -> None:
    run_id = answered(plausible_range={"acc": [0.9, 1.0]})
    report = guard(store, run_id=run_id, now=NOW)
    again = guard(store, run_id=run_id, now="2026-01-02T00:00:00+00:00")
    assert again == report
    (alert,) = store.catalog.alerts()
    assert (alert.run_id, alert.kind, alert.created_at) == (run_id, "excursion", NOW)
    assert alert.title == f"colours acc quarantined in run {run_id[:12]}: plausible_range"
    for sample in report.excursions[0].samples:
        assert f"item {sample.item_id} " in alert.body
    assert alert.body.count("gold: ") == 5


def test_rows_that_are_wrong_take_every_metric_of_the_benchmark_and_no_other(store: Store, answered: Answered) -> None:
    def always_first(name: str, _n: int) -> dict[str, Any]:
        return {"logprobs": (-1.0, -2.0, -3.0, -4.0)} if name == "colours" else {}

    run_id = answered(always_first)
    report = guard(store, run_id=run_id, now=NOW)
    assert [e.check for e in report.excursions] == ["constant_prediction"]
    assert quarantined(store, run_id) == {("colours", "acc"), ("colours", "acc_norm")}


def test_two_benchmarks_that_fail_one_check_are_both_named(store: Store, answered: Answered) -> None:
    def one_invalid(name: str, n: int) -> dict[str, Any]:
        broken = {
            "status": "invalid",
            "reason": "non-finite logits",
            "logprobs": (),
            "token_logprobs": (),
            "output": "",
        }
        return broken if n == 4 and name != "colour-sums" else {}

    run_id = answered(one_invalid)
    report = guard(store, run_id=run_id, now=NOW)
    assert report.checks["invalid_share"] == (
        "failed on colours acc: 1 of 70 items invalid, expected at most 0%; "
        "failed on colour-text bits_per_byte: 1 of 40 items invalid, expected at most 0%"
    )
    assert [e.check for e in report.excursions] == ["invalid_share", "invalid_share"]
    assert {name for name, _ in quarantined(store, run_id)} == {"colours", "colour-text"}
    assert len(store.catalog.alerts()) == 2


def test_outputs_cut_at_the_limit_take_every_reading_of_them(store: Store, answered: Answered) -> None:
    def cut(name: str, _n: int) -> dict[str, Any]:
        return {"output_truncated": True, "finish_reason": "length"} if name == "colour-sums" else {}

    run_id = answered(cut)
    report = guard(store, run_id=run_id, now=NOW)
    assert report.checks["truncated_share"].endswith("100% cut at the token limit, expected at most 50%")
    assert {name for name, _ in quarantined(store, run_id)} == {"colour-sums"}
    assert len(quarantined(store, run_id)) == 4


def test_a_run_that_straddles_two_environments_is_quarantined_whole(store: Store, answered: Answered) -> None:
    run_id = answered()
    for shard, fingerprint in enumerate("ab"):
        store.catalog.record_shard(run_id, shard, status="done", env_fingerprint=fingerprint * 32, node="n")
    report = guard(store, run_id=run_id, now=NOW)
    assert report.checks["one_environment"].startswith(
        "failed on colours acc: 2 (aaaaaaaaaaaa, bbbbbbbbbbbb), expected"
    )
    assert quarantined(store, run_id) == {(m.benchmark, m.metric) for m in store.catalog.measurements(run_id)}


def test_a_number_that_became_plausible_is_no_longer_quarantined(store: Store, answered: Answered) -> None:
    from dataclasses import replace

    run_id = answered()
    wrong = [replace(m, quarantined=True, quarantine_reason="old") for m in store.catalog.measurements(run_id)]
    store.catalog.save_measurements(run_id, wrong)
    guard(store, run_id=run_id, now=NOW)
    assert quarantined(store, run_id) == set()


def test_a_run_that_was_not_aggregated_is_refused_by_name(store: Store, answered: Answered) -> None:
    run_id = answered()
    store.catalog.save_measurements(run_id, [])
    with pytest.raises(DataError, match=f"run {run_id} has no measurement of 'colours'; aggregate it first"):
        guard(store, run_id=run_id, now=NOW)
