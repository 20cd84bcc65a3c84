"""Nights: the first, the same again, other rows on the same machine, a new machine near and far, and the two plans."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eval_tasks.determinism import PlannedNight, adopt, explain
from eval_tasks.errors import InfraError, UserError
from eval_tasks.gate import gate
from eval_tasks.records import Request, Response, SentinelCheck, SentinelReport
from tests.determinism.conftest import HOUR, Nights, nudged, worse
from tests.planned import N_CHOICE, N_GENERATED, N_TEXT

N_ITEMS = N_CHOICE + N_TEXT + N_GENERATED


def test_the_first_night_is_adopted_by_itself_and_the_next_is_the_same_bit_for_bit(nights: Nights) -> None:
    first = nights.run(1)
    assert (first.status, first.n_items) == ("adopted", N_ITEMS)
    assert first.perturbed is not None
    assert (first.perturbed.n_items, first.perturbed.n_differing) == (N_ITEMS, 0)
    (baseline,) = nights.store.catalog.baselines()
    assert (baseline.status, baseline.run_id, baseline.decided_by) == ("adopted", first.run_id, "by itself")
    second = nights.run(2)
    assert (second.status, second.baseline_run_id) == ("good", first.run_id)
    assert second.against_baseline is not None and second.against_baseline.n_differing == 0
    assert nights.store.catalog.baselines() == [baseline]
    assert nights.store.catalog.open_blocks() == [] and nights.store.catalog.alerts() == []
    assert gate(nights.store, environment="one").open


def test_the_two_plans_of_a_night_have_other_batches_companions_and_shards(nights: Nights) -> None:
    planned = nights.plan(1)
    store = nights.store
    plans = [store.plan(uri) for uri in (planned.plan_uri, planned.perturbed_plan_uri)]
    assert plans[0].request == plans[1].request
    assert len(plans[1].shards) > len(plans[0].shards)
    batches = [{b.item_ids for b in store.blobs.get_batches(plan.batches_blob)} for plan in plans]
    assert not batches[0] & batches[1]
    assert {i for b in batches[0] for i in b} == {i for b in batches[1] for i in b}
    assert nights.plan(1) == planned, "the same night is the same night"
    assert nights.plan(2).run_id not in (planned.run_id, planned.perturbed_run_id)


def test_the_engines_variance_is_recorded_and_zero(nights: Nights) -> None:
    night = nights.run(1)
    (rerun,) = nights.store.catalog.reruns((night.env_fingerprint, night.env_fingerprint))
    assert rerun.kind == "engine" and rerun.checkpoint_id == night.checkpoint_id
    assert {(d.benchmark, d.metric) for d in rerun.differences} >= {("colours", "acc"), ("colour-sums", "strict")}
    assert all((d.delta, d.se_flip) == (0.0, 0.0) for d in rerun.differences)
    nights.run(1)
    assert len(nights.store.catalog.reruns()) == 1


def test_one_bit_on_the_same_machine_fails_blocks_and_shows_both_values(nights: Nights) -> None:
    first = nights.run(1)
    nights.fault = nudged
    second = nights.run(2)
    assert second.status == "failed"
    assert second.against_baseline is not None and second.against_baseline.n_differing == 1
    (block,) = nights.store.catalog.open_blocks()
    assert (block.kind, block.fingerprint, block.run_id) == ("rows_changed", first.env_fingerprint, second.run_id)
    assert block.reason.startswith(f"1 of {N_ITEMS} items have other rows than the adopted baseline")
    assert block.good_until == first.good_at
    (shown,) = block.first
    assert (shown.benchmark, shown.item_id, shown.field) == ("colours", "c003", "token_logprobs[0][0]")
    assert shown.a != shown.b and "0x" in shown.a
    (alert,) = nights.store.catalog.alerts()
    assert alert.kind == "determinism_block" and shown.a in alert.body and shown.b in alert.body
    assert not gate(nights.store, environment="one").open
    third = nights.run(3)
    assert third.status == "failed"
    assert nights.store.catalog.open_blocks() == [block], "the same change is explained once"
    assert len(nights.store.catalog.alerts()) == 1


def test_a_night_that_was_judged_decides_nothing_anew(nights: Nights) -> None:
    nights.run(1)
    nights.fault = nudged
    second = nights.run(2)
    block = nights.store.catalog.open_blocks()[0]
    explain(nights.store, block.block_id, by="ada", reason="a bad card", outcome="baseline kept", now=HOUR.format(3))
    assert nights.run(2) == second
    assert nights.store.catalog.open_blocks() == []


def test_other_rows_that_a_person_adopts_are_the_baseline_from_then_on(nights: Nights) -> None:
    first = nights.run(1)
    nights.fault = nudged
    second = nights.run(2)
    block = nights.store.catalog.open_blocks()[0]
    explained = explain(
        nights.store, block.block_id, by="ada", reason="a new release", outcome="baseline adopted", now=HOUR.format(3)
    )
    assert (explained.outcome, explained.explanation) == ("baseline adopted", "a new release")
    (baseline,) = nights.store.catalog.baselines()
    assert (baseline.run_id, baseline.replaces, baseline.decided_by) == (second.run_id, first.run_id, "ada")
    assert gate(nights.store, environment="one").open
    assert nights.run(4).status == "good"


def test_a_new_machine_within_the_bound_is_adopted_by_itself_and_its_effect_recorded(nights: Nights) -> None:
    first = nights.run(1)
    nights.machine = {"driver": "560"}
    nights.fault = nudged
    second = nights.run(2)
    assert second.status == "adopted"
    assert {b.env_fingerprint: b.status for b in nights.store.catalog.baselines()} == {
        first.env_fingerprint: "adopted",
        second.env_fingerprint: "adopted",
    }
    (effect,) = nights.store.catalog.reruns((first.env_fingerprint, second.env_fingerprint))
    assert (effect.kind, effect.run_a, effect.run_b) == ("environment", first.run_id, second.run_id)
    assert all(d.delta == 0 for d in effect.differences)
    assert any("within the declared bound" in finding for finding in second.findings)
    assert nights.store.catalog.open_blocks() == []
    nights.machine = {"driver": "550"}
    nights.fault = None
    assert nights.run(3).baseline_run_id == first.run_id, "each fingerprint has its own baseline"


def test_a_new_machine_beyond_the_bound_waits_for_a_person_and_evaluates_nothing(nights: Nights) -> None:
    nights.run(1)
    nights.machine = {"driver": "560"}
    nights.fault = worse
    second = nights.run(2)
    assert second.status == "candidate"
    moved = {(d.benchmark, d.metric): d.delta for d in second.effect}
    assert abs(moved["colours", "acc"]) * N_CHOICE == pytest.approx(2, abs=1.01) and moved["colours", "acc"] != 0
    (block,) = nights.store.catalog.open_blocks()
    assert (block.kind, block.fingerprint) == ("new_environment", second.env_fingerprint)
    assert "colours acc" in block.reason
    assert not gate(nights.store, environment="one").open
    with pytest.raises(UserError, match=f"block {block.block_id} asks for that decision"):
        adopt(nights.store, "one", by="ada", reason="x", now=HOUR.format(3))
    assert nights.run(3).status == "candidate"
    assert nights.store.catalog.open_blocks() == [block]
    explain(nights.store, block.block_id, by="ada", reason="measured", outcome="baseline adopted", now=HOUR.format(3))
    assert gate(nights.store, environment="one").open
    assert nights.run(4).status == "good"


def test_a_refused_machine_stays_refused_until_somebody_adopts_it(nights: Nights) -> None:
    nights.run(1)
    nights.machine, nights.fault = {"driver": "560"}, worse
    nights.run(2)
    block = nights.store.catalog.open_blocks()[0]
    explain(nights.store, block.block_id, by="ada", reason="a bad driver", outcome="baseline kept", now=HOUR.format(3))
    assert gate(nights.store, environment="one").reason.startswith("ada refused fingerprint")
    assert nights.run(4).findings[0].startswith("ada refused this fingerprint")
    assert nights.store.catalog.open_blocks() == []
    nights.machine, nights.fault = {"driver": "550"}, None
    assert nights.run(5).status == "good"
    assert gate(nights.store, environment="one").open, "the machines were changed back"
    refused = block.fingerprint
    with pytest.raises(UserError, match="a name and a reason"):
        adopt(nights.store, refused, by="ada", reason=" ", now=HOUR.format(6))
    adopt(nights.store, refused, by="ada", reason="the driver is right, the old one was not", now=HOUR.format(6))
    assert nights.store.catalog.baseline(refused, block.suite_id).status == "adopted"  # type: ignore[union-attr]
    with pytest.raises(UserError, match="no candidate to adopt"):
        adopt(nights.store, refused, by="ada", reason="again", now=HOUR.format(7))


def test_rows_that_depend_on_the_batch_plan_fail(nights: Nights) -> None:
    planned = nights.plan(1)
    nights.compute(planned.plan_uri)
    nights.fault = worse
    nights.compute(planned.perturbed_plan_uri)
    night = nights.judge(_with_sentinels(nights, planned), 1)
    assert night.status == "failed" and night.perturbed is not None and night.perturbed.n_differing == 2
    (block,) = nights.store.catalog.open_blocks()
    assert block.kind == "engine_variance"
    assert "2 of 146 items differ between two batch plans" in block.reason and "colours acc" in block.reason
    assert nights.store.catalog.baselines() == [], "nothing is adopted that contradicts itself"


def _with_sentinels(nights: Nights, planned: PlannedNight, *broken: str) -> PlannedNight:
    checks = tuple(
        SentinelCheck(name=n, passed=n not in broken, n_items=9, differing=("x",)) for n in ("alone", "again")
    )
    run = nights.store.catalog.run(planned.run_id)
    nights.store.catalog.save_sentinels(
        SentinelReport(run_id=run.run_id, env_fingerprint=run.env_fingerprint or "", node="n7", checks=checks)
    )
    return planned


def test_a_broken_promise_of_the_engine_blocks_and_names_the_node(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The night's engine counts as a real one here, so that sentinels are asked for."""
    from eval_tasks.determinism import judging

    planned = nights.plan(1)
    for uri in (planned.plan_uri, planned.perturbed_plan_uri):
        nights.compute(uri)
    real = judging._sentinels

    def as_if_real(store, findings, run):  # type: ignore[no-untyped-def]
        engine = replace(run.request.engine, mock_accuracy=None)
        return real(store, findings, replace(run, request=replace(run.request, engine=engine)))

    monkeypatch.setattr(judging, "_sentinels", as_if_real)
    with pytest.raises(InfraError, match=r"sentinels beside run \w+ have not reported"):
        nights.judge(planned, 1)
    night = nights.judge(_with_sentinels(nights, planned, "alone"), 1)
    assert (night.status, night.sentinels) == ("failed", (1, 2))
    (block,) = nights.store.catalog.open_blocks()
    assert (block.kind, block.nodes) == ("sentinels", ("n7",))
    assert "alone (1 items)" in block.reason


def test_a_fleet_with_two_kinds_of_machines_under_one_name_is_told_and_not_called_variance(nights: Nights) -> None:
    planned = nights.plan(1)
    nights.compute(planned.plan_uri)
    nights.machine, nights.fault = {"driver": "560"}, worse
    nights.compute(planned.perturbed_plan_uri)
    night = nights.judge(planned, 1)
    assert night.status == "adopted" and night.perturbed is None
    assert "two kinds of machines answer to environment 'one'" in night.findings[0]
    assert nights.store.catalog.open_blocks() == []


def test_rows_that_are_missing_are_for_another_try(nights: Nights) -> None:
    planned = nights.plan(1)
    nights.compute(planned.plan_uri)
    with pytest.raises(InfraError, match="incomplete"):
        nights.judge(planned, 1)
    assert nights.store.catalog.nights() == []


def test_a_lost_answer_on_the_same_machine_is_a_difference_too(nights: Nights) -> None:
    nights.run(1)

    def cut(request: Request, row: Response) -> Response:
        return replace(row, status="invalid", reason="non-finite") if request.item_id == "g005" else row

    nights.fault = cut
    night = nights.run(2)
    assert night.status == "failed" and night.against_baseline is not None
    assert night.against_baseline.first[0].field == "status"
    assert (night.against_baseline.first[0].a, night.against_baseline.first[0].b) == ("'ok'", "'invalid'")


def test_another_suite_version_has_no_baseline_until_a_person_adopts_one(nights: Nights) -> None:
    nights.run(1)
    suite = nights.store.catalog.suite("colours-all")
    nights.store.catalog.save_suite(replace(suite, version="2", entries=suite.entries[:2]))
    night = nights.run(2)
    assert night.status == "candidate"
    assert "no adopted baseline is of suite colours-all@2 and this checkpoint" in night.findings[0]
    assert nights.store.catalog.open_blocks() == [], "the machine is known to be good"
    (alert,) = nights.store.catalog.alerts()
    assert alert.kind == "baseline_candidate"
    adopt(nights.store, "one", by="ada", reason="the suite was cut", now=HOUR.format(3))
    assert nights.run(4).status == "good"


def test_a_new_machine_and_a_new_suite_at_once_cannot_be_told_apart(nights: Nights) -> None:
    nights.run(1)
    suite = nights.store.catalog.suite("colours-all")
    nights.store.catalog.save_suite(replace(suite, version="2", entries=suite.entries[:2]))
    nights.machine = {"driver": "560"}
    assert nights.run(2).status == "candidate"
    (block,) = nights.store.catalog.open_blocks()
    assert block.kind == "new_environment" and "cannot be measured" in block.reason
