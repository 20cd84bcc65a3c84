"""Budgets and the ledger -> may another run start? What is under way counts with its forecast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from eval_tasks.budgets.forecasting import forecast
from eval_tasks.digests import digest_value, short_id
from eval_tasks.errors import BudgetError
from eval_tasks.policies import Budget
from eval_tasks.records import Alert, Cost, CostEntry, Plan
from eval_tasks.settings import Config, EnvironmentSpec
from eval_tasks.store import Store

KIND = "budget_exceeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLine:
    """A budget and what has become of it: `used` by runs that are done, `reserved` by those under way."""

    budget: Budget
    measure: str
    limit: float
    used: float
    reserved: float
    n_runs: int

    @property
    def left(self) -> float:
        """What another run may cost; negative when more was spent."""
        return self.limit - self.used - self.reserved


def reserve(store: Store, plan: Plan, spec: EnvironmentSpec, config: Config, now: str) -> CostEntry | None:
    """Put a plan's forecast into the ledger. None for a mock's run, which costs nothing worth counting.

    Raises BudgetError, and one alert for the budget, when a run of the selection or release tier does not fit any more:
    then nothing is reserved. `now` is UTC, ISO 8601.
    """
    run = store.catalog.run(plan.run_id)
    if run.origin == "mock":
        return None
    entry = CostEntry(
        run_id=run.run_id,
        training_run=run.training_run,
        tier=run.tier,
        environment=plan.environment,
        created_at=now,
        forecast=forecast(store, plan, run.tier, spec),
    )
    mine = [budget for budget in config.budgets if budget.covers(run.tier, run.training_run)]

    def check(others: Sequence[CostEntry]) -> None:
        for budget in mine:
            for line in _lines(budget, others, now):
                _refuse_beyond(line, entry)

    try:
        return store.catalog.reserve_cost(entry, check)
    except BudgetError as error:
        store.catalog.raise_alert(_alert(error, run.training_run, run.run_id, now))
        raise


def budget_lines(store: Store, config: Config, now: str) -> list[BudgetLine]:
    """Every budget, one line for each thing it limits."""
    entries = store.catalog.costs()
    return [line for budget in config.budgets for line in _lines(budget, entries, now)]


def _lines(budget: Budget, entries: Sequence[CostEntry], now: str) -> list[BudgetLine]:
    since = None if budget.days is None else datetime.fromisoformat(now) - timedelta(days=budget.days)
    counted = [
        entry
        for entry in entries
        if budget.covers(entry.tier, entry.training_run)
        and (since is None or datetime.fromisoformat(entry.created_at) > since)
    ]
    return [
        BudgetLine(
            budget=budget,
            measure=measure,
            limit=limit,
            used=sum(_in(measure, e.actual) or 0.0 for e in counted if e.actual is not None),
            reserved=sum(_in(measure, e.forecast) or 0.0 for e in counted if e.actual is None),
            n_runs=len(counted),
        )
        for measure, limit in budget.limits.items()
    ]


def _in(measure: str, cost: Cost | None) -> float | None:
    if cost is None:
        return None
    if measure == "device_hours":
        return None if cost.device_seconds is None else cost.device_seconds / 3600
    return cost.usd if measure == "usd" else float(cost.tokens)


def _refuse_beyond(line: BudgetLine, entry: CostEntry) -> None:
    """A run whose cost nobody can forecast is let go while anything is left: it is how the speed becomes known."""
    wanted = _in(line.measure, entry.forecast)
    if line.left > 0 if wanted is None else wanted <= line.left:
        return
    asked = "an unknown amount" if wanted is None else f"at most {wanted:,.6g}"
    raise BudgetError(
        f"the budget of {line.budget.title} is spent: {line.limit:,.6g} {line.measure}, of which "
        f"{line.used:,.6g} are used and {line.reserved:,.6g} reserved by runs under way; run {entry.run_id[:12]} would "
        f"take {asked}. Raise it under 'budgets' in the configuration and clear the task; health goes on meanwhile",
        subject=[line.budget.title, line.measure, line.limit],
        period="" if line.budget.days is None else entry.created_at[:7],
    )


def _alert(error: BudgetError, training_run: str, run_id: str, now: str) -> Alert:
    """One for a budget as it is configured: raised once, it is said again only when the new one is spent too."""
    return Alert(
        alert_id=short_id(digest_value([KIND, *error.subject, error.period])),
        kind=KIND,
        title=str(error).partition(":")[0],
        body=f"{error}\nWhat stopped first was run {run_id}. See: python -m eval_tasks budget show",
        training_run=training_run or None,
        created_at=now,
    )
