"""Budgets against a real ledger: who may start, who may not, what is said, and that two never share one last dollar."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.budgets import account, budget_lines, reserve
from eval_tasks.errors import BudgetError, UserError
from eval_tasks.grade import grade
from eval_tasks.plan.planning import record_plan
from eval_tasks.records import CostEntry, Plan
from eval_tasks.settings import Config, Settings
from eval_tasks.store import Store, open_store
from tests.answered import answer_by_hand
from tests.planned import NOW, planned, register, write_checkpoint

LATER = "2026-01-20T00:00:00+00:00"


def config(*budgets: dict[str, Any], **environment: Any) -> Config:
    spec = {"name": "local", "usd_per_device_hour": 3.6, "tokens_per_second": 100.0, **environment}
    runs = [{"name": "tiny", "uri": "/runs/tiny"}]
    return Config.model_validate({"training_runs": runs, "environments": [spec], "budgets": list(budgets)})


@pytest.fixture
def plan(store: Store, tmp_path: Path) -> Plan:
    register(store, tmp_path / "benchmarks")
    return planned(store, write_checkpoint(tmp_path / "step-1"))


@pytest.fixture
def another(store: Store, plan: Plan) -> Callable[..., Plan]:
    """`another(n, tier=...)`: the same work as another run."""

    def build(n: int, **changes: Any) -> Plan:
        run = replace(store.catalog.run(plan.run_id), run_id=f"{n:032x}", plan_blob=None, **changes)
        return record_plan(store, run, replace(plan, run_id=run.run_id))

    return build


def ask(store: Store, plan: Plan, config: Config, now: str = NOW) -> CostEntry | None:
    return reserve(store, plan, config.environment(None), config, now)


def tokens(plan: Plan) -> int:
    return sum(shard.cost_tokens for shard in plan.shards)


def test_a_forecast_is_tokens_over_speed_times_price(store: Store, plan: Plan) -> None:
    entry = ask(store, plan, config())
    assert entry is not None and entry.actual is None
    assert (entry.forecast.items, entry.forecast.tokens) == (plan.n_items, tokens(plan))
    assert entry.forecast.device_seconds == tokens(plan) / 100
    assert entry.forecast.usd == pytest.approx(tokens(plan) / 100 * 0.001)
    assert ask(store, plan, config(tokens_per_second=1.0)) == entry, "a run that is planned again keeps its line"


def test_each_pod_of_a_forecast_by_declared_speed_loads_the_model(store: Store, plan: Plan) -> None:
    entry = ask(store, plan, config(load_seconds=30.0, gpus=2))
    assert entry is not None
    assert entry.forecast.device_seconds == tokens(plan) / 100 + 30 * 2 * len(plan.shards)


def test_what_was_spent_is_written_down_and_tells_the_next_forecast(
    store: Store, plan: Plan, another: Callable[..., Plan]
) -> None:
    ask(store, plan, config(tokens_per_second=None))
    assert store.catalog.cost(plan.run_id).forecast.device_seconds is None  # type: ignore[union-attr]
    answer_by_hand(store, plan, lambda name, n: {"n_prompt_tokens": 10, "n_output_tokens": 2})
    for shard in plan.shards:
        report = {"env_fingerprint": "f" * 32, "n_items": shard.n_items}
        store.catalog.record_shard(plan.run_id, shard.shard, status="failed", seconds=2.0, **report)
        store.catalog.record_shard(plan.run_id, shard.shard, status="running", **report)
        store.catalog.record_shard(plan.run_id, shard.shard, status="done", seconds=3.0, **report)
    grade(store, run_id=plan.run_id)
    entry = account(store, plan.run_id, config())
    assert entry is not None and entry.actual is not None
    assert (entry.actual.items, entry.actual.tokens) == (plan.n_items, 12 * plan.n_items)
    assert entry.actual.device_seconds == 5.0 * len(plan.shards), "a pod that failed has cost too"
    assert entry.actual.usd == pytest.approx(5.0 * len(plan.shards) * 0.001)
    assert account(store, plan.run_id, config()) == entry
    again = ask(store, another(7), config(tokens_per_second=None))
    assert again is not None and again.forecast.device_seconds == pytest.approx(entry.actual.device_seconds)
    eight = account(store, plan.run_id, config(gpus=8))
    assert eight is not None and eight.actual is not None and eight.actual.device_seconds == 40.0 * len(plan.shards)


def test_a_run_that_fits_is_let_go_and_one_that_does_not_is_refused_with_one_alert(
    store: Store, plan: Plan, another: Callable[..., Plan]
) -> None:
    limited = config({"tier": "selection", "tokens": 2 * tokens(plan)})
    assert ask(store, plan, limited) and ask(store, another(2), limited)
    for n in (3, 4):
        with pytest.raises(BudgetError, match="the budget of the selection tier for all training runs is spent: "):
            ask(store, another(n), limited)
    assert [e.run_id for e in store.catalog.costs()] == sorted([plan.run_id, another(2).run_id])
    (alert,) = store.catalog.alerts()
    assert (alert.kind, alert.training_run) == ("budget_exceeded", "tiny")
    assert alert.title == "the budget of the selection tier for all training runs is spent"
    assert "reserved by runs under way" in alert.body and "budget show" in alert.body
    (line,) = budget_lines(store, limited, NOW)
    assert (line.used, line.reserved, line.left, line.n_runs) == (0, 2 * tokens(plan), 0, 2)
    raised = config({"tier": "selection", "tokens": 3 * tokens(plan)})
    assert ask(store, another(3), raised) is not None
    with pytest.raises(BudgetError):
        ask(store, another(4), raised)
    assert len(store.catalog.alerts()) == 2, "another budget is another event"


def test_health_goes_on_whatever_is_spent(store: Store, plan: Plan, another: Callable[..., Plan]) -> None:
    limited = config({"tier": "selection", "tokens": 0}, {"tier": "release", "usd": 0.0})
    assert ask(store, another(2, tier="health"), limited) is not None
    for n, tier in ((3, "selection"), (4, "release")):
        with pytest.raises(BudgetError):
            ask(store, another(n, tier=tier), limited)


def test_a_budget_of_one_training_run_is_nobody_elses(store: Store, plan: Plan, another: Callable[..., Plan]) -> None:
    limited = config({"tier": "selection", "training_run": "tiny", "tokens": tokens(plan) - 1})
    assert ask(store, another(2, training_run="other"), limited) is not None
    with pytest.raises(BudgetError, match="for training run 'tiny'"):
        ask(store, plan, limited)


def test_a_budget_over_days_forgets_what_is_older(store: Store, plan: Plan, another: Callable[..., Plan]) -> None:
    limited = config({"tier": "selection", "tokens": tokens(plan), "days": 7})
    assert ask(store, plan, limited) is not None
    with pytest.raises(BudgetError, match="within 7 days"):
        ask(store, another(2), limited, "2026-01-07T00:00:00+00:00")
    assert ask(store, another(2), limited, LATER) is not None


def test_while_the_speed_is_unknown_runs_are_let_go_until_the_budget_is_spent(
    store: Store, plan: Plan, another: Callable[..., Plan]
) -> None:
    limited = config({"tier": "selection", "device_hours": 0.001}, tokens_per_second=None)
    assert ask(store, plan, limited) is not None
    answer_by_hand(store, plan)
    store.catalog.record_shard(plan.run_id, 0, status="done", seconds=3.6, env_fingerprint="f" * 32)
    grade(store, run_id=plan.run_id)
    account(store, plan.run_id, limited)
    with pytest.raises(BudgetError, match="device_hours"):
        ask(store, another(2), limited)


def test_two_that_ask_at_once_do_not_both_get_what_is_left_for_one(
    settings: Settings, store: Store, plan: Plan, another: Callable[..., Plan]
) -> None:
    limited = config({"tier": "selection", "tokens": tokens(plan)})
    plans = [another(n) for n in range(10, 16)]
    barrier, refused = threading.Barrier(len(plans)), []

    def one(made: Plan) -> None:
        with open_store(settings) as own:
            barrier.wait(10)
            try:
                ask(own, made, limited)
            except BudgetError:
                refused.append(made.run_id)

    threads = [threading.Thread(target=one, args=(made,)) for made in plans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == len(plans) - 1
    assert len(store.catalog.costs()) == 1
    assert len(store.catalog.alerts()) == 1


@pytest.mark.parametrize(
    ("budget", "environment", "said"),
    [
        ({"tier": "health", "tokens": 1}, {}, "no budget stops the health tier"),
        ({"tier": "selection"}, {}, "give at least one of 'usd', 'device_hours' and 'tokens'"),
        (
            {"tier": "selection", "usd": 5, "training_run": "tinny"},
            {},
            "'tinny', which is not configured; close: 'tiny'",
        ),
        (
            {"tier": "selection", "usd": 5},
            {"usd_per_device_hour": None},
            "needs usd_per_device_hour .* absent from: local",
        ),
        ({"tier": "selection", "usd": -1}, {}, "usd"),
    ],
)
def test_a_budget_that_could_not_be_kept_is_refused(
    budget: dict[str, Any], environment: dict[str, Any], said: str, tmp_path: Path
) -> None:
    import yaml

    from eval_tasks.settings import load_config

    spec = {"name": "local", "usd_per_device_hour": 3.6, **environment}
    document = {"training_runs": [{"name": "tiny", "uri": "/x"}], "environments": [spec], "budgets": [budget]}
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(UserError, match=said):
        load_config(path)
