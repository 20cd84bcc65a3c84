"""`budget show`: what is left of each budget, and what each tier of each training run has cost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click

from eval_tasks.budgets import BudgetLine, budget_lines
from eval_tasks.cli.output import json_option, opened, print_json, print_table
from eval_tasks.records import Cost, CostEntry, to_json
from eval_tasks.report.numbers import ABSENT, count
from eval_tasks.settings import Settings, load_config


@click.group("budget")
def budget_group() -> None:
    """Show budgets and the ledger of costs."""


@budget_group.command("show")
@click.option("--training-run", default=None)
@click.option("--runs", is_flag=True, help="The ledger run by run, newest first.")
@json_option
def budget_show(training_run: str | None, runs: bool, as_json: bool) -> None:
    """Show what is left of each budget, and what was spent by tier and training run."""
    store = opened()
    lines = budget_lines(store, load_config(Settings().config), datetime.now(UTC).isoformat(timespec="seconds"))
    lines = [line for line in lines if training_run is None or line.budget.training_run in (None, training_run)]
    entries = store.catalog.costs(training_run=training_run)
    totals = _totals(entries)
    if as_json:
        document: dict[str, Any] = {"budgets": [_line(line) for line in lines], "spent": totals}
        print_json(document | ({"runs": [to_json(entry) for entry in entries]} if runs else {}))
        return
    print_table(
        "budgets",
        ("budget", "of", "limit", "used", "reserved", "left"),
        [
            (li.budget.title, li.measure, *(f"{n:,.6g}" for n in (li.limit, li.used, li.reserved, li.left)))
            for li in lines
        ],
    )
    print_table(
        "spent (forecasts of what is under way apart)",
        ("training run", "tier", "runs", "under way", "items", "tokens", "device-hours", "USD"),
        [
            (
                t["training_run"],
                t["tier"],
                count(t["runs"]),
                count(t["under_way"]),
                count(t["items"]),
                count(t["tokens"]),
                f"{t['device_seconds'] / 3600:,.2f}",
                ABSENT if t["usd"] is None else f"{t['usd']:,.2f}",
            )
            for t in totals
        ],
    )
    if runs:
        print_table(
            "runs",
            ("run", "training run", "tier", "begun (UTC)", "tokens at most", "tokens", "device-s at most", "device-s"),
            [
                (
                    e.run_id[:12],
                    e.training_run,
                    e.tier,
                    e.created_at,
                    count(e.forecast.tokens),
                    count(e.actual.tokens) if e.actual else ABSENT,
                    _seconds(e.forecast),
                    _seconds(e.actual),
                )
                for e in entries
            ],
        )


def _seconds(cost: Cost | None) -> str:
    return ABSENT if cost is None or cost.device_seconds is None else f"{cost.device_seconds:,.1f}"


def _line(line: BudgetLine) -> dict[str, Any]:
    return {
        "budget": line.budget.model_dump(mode="json"),
        "measure": line.measure,
        "limit": line.limit,
        "used": line.used,
        "reserved": line.reserved,
        "left": line.left,
        "runs": line.n_runs,
    }


def _totals(entries: Sequence[CostEntry]) -> list[dict[str, Any]]:
    """One row for each training run and tier, by name; money is None where no run of it had a price."""
    groups: dict[tuple[str, str], list[CostEntry]] = {}
    for entry in entries:
        groups.setdefault((entry.training_run, entry.tier), []).append(entry)
    rows = []
    for (training_run, tier), members in sorted(groups.items()):
        done = [entry.actual for entry in members if entry.actual is not None]
        prices = [cost.usd for cost in done if cost.usd is not None]
        rows.append(
            {
                "training_run": training_run,
                "tier": tier,
                "runs": len(done),
                "under_way": len(members) - len(done),
                "items": sum(cost.items for cost in done),
                "tokens": sum(cost.tokens for cost in done),
                "device_seconds": sum(cost.device_seconds or 0.0 for cost in done),
                "usd": sum(prices) if prices else None,
            }
        )
    return rows


COMMANDS = (budget_group,)
