"""The claims at the end of a chaos run can fail: each is shown what it must not miss."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from eval_tasks.aggregate import aggregate
from eval_tasks.grade import grade
from eval_tasks.records import Alert, Landing
from eval_tasks.run import run_shard
from eval_tasks.store import Store
from tests.chaos import accounts
from tests.end_to_end.undisturbed import Outcome
from tests.planned import NOW, planned, register, uri_of, write_checkpoint


def landed(store: Store, step: int, etag: str = "a", *, dag_runs: tuple[str, ...] = ("health__1",)) -> None:
    landing = Landing(training_run="tiny", step=step, uri=f"/c/step-{step}", listing=(("config.json", 1, etag),))
    store.catalog.see_landing(landing, NOW)
    store.catalog.mark_landing(landing.landing_id, state="dispatched", now=NOW, dag_runs=dag_runs)
    for dag_run in dag_runs:
        store.catalog.finish_landing(landing.landing_id, dag_run)


def test_a_ledger_in_order_passes_and_a_lost_or_doubled_step_is_named(store: Store) -> None:
    landed(store, 1)
    landed(store, 2)
    assert accounts.of_ledger(store, "tiny", [1, 2], []) == []
    assert accounts.of_ledger(store, "tiny", [1, 2, 3], []) == ["step 3: 0 landings"]
    assert "broken" in accounts.of_ledger(store, "tiny", [1], [2])[0]
    landed(store, 2, "b")
    assert accounts.of_ledger(store, "tiny", [1, 2], []) == ["step 2: 2 landings"]


def test_a_dag_run_that_failed_or_is_missing_is_named() -> None:
    states = {"evaluate_health": {"h1": "success", "h2": "failed"}}
    assert accounts.of_dag_runs(states, {"evaluate_health": 2}) == ["evaluate_health: h2 is failed"]
    assert accounts.of_dag_runs({"evaluate_health": {"h1": "success"}}, {"evaluate_health": 2}) == [
        "evaluate_health: 1 runs, and 2 landings asked for one"
    ]


def test_other_rows_or_numbers_and_a_lost_run_are_named(store: Store, tmp_path: Path) -> None:
    register(store, tmp_path / "suite")
    made = planned(store, write_checkpoint(tmp_path / "model"), shard_cost_tokens=10**6)
    for shard in made.shards:
        run_shard(store, plan_uri=uri_of(store, made), shard=shard.shard, owner="t", cache_dir=tmp_path / "cache")
    grade(store, run_id=made.run_id)
    aggregate(store, made.run_id)
    outcome = Outcome.of(store, made.run_id)
    assert accounts.of_results(store, "tiny", {1: outcome}) == []
    assert accounts.of_results(store, "tiny", {1: replace(outcome, rows="0" * 64)}) == [
        "step 1: other rows than an undisturbed run"
    ]
    assert accounts.of_results(store, "tiny", {1: replace(outcome, numbers=())}) == [
        "step 1: other numbers than an undisturbed run"
    ]
    assert accounts.of_results(store, "tiny", {1: outcome, 2: outcome}) == ["step 2: 0 runs"]


@pytest.mark.parametrize(
    ("sent", "messages", "wrong"),
    [
        (True, ["alert a1"], []),
        (True, ["alert a1", "alert a1"], []),
        (True, [], ["alert 'torn' was never told"]),
        (False, ["alert a1"], ["alert a1 still waits for channel hook"]),
    ],
)
def test_an_alert_is_told_and_known_to_be(store: Store, sent: bool, messages: list[str], wrong: list[str]) -> None:
    alert = Alert(alert_id="a1", kind="checkpoint_broken", title="torn", body="step 2", created_at=NOW)
    store.catalog.raise_alert(alert)
    store.catalog.fan_out(["hook"], NOW)
    if sent:
        delivery = store.catalog.claim_delivery("hook", "me", 60.0, NOW)
        assert delivery is not None
        store.catalog.delivered(delivery, "me", NOW)
    assert accounts.of_alerts(store, [2], messages) == wrong
    assert accounts.told_again(store, messages) == max(0, len(messages) - 1)
    assert accounts.of_alerts(store, [2, 3], messages)[-1] == "1 alerts for 2 broken checkpoints"
