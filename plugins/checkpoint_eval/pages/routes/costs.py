"""The cost ledger: what evaluations were expected to cost, and what they did."""

from __future__ import annotations

from fastapi import APIRouter

from checkpoint_eval.api.access import READ
from checkpoint_eval.api.archive import Archive, now
from checkpoint_eval.pages.page import Page, Section, html, link, listing, moment
from checkpoint_eval.pages.viewer import Visitor
from eval_tasks.budgets import budget_lines
from eval_tasks.report.numbers import cost_text
from eval_tasks.settings import Settings, load_config
from eval_tasks.store import Store

router = APIRouter(dependencies=READ)

_LISTED = 100


@router.get("/costs")
def costs(store: Archive, viewer: Visitor) -> str:
    """The ledger, newest first."""
    entries = store.catalog.costs()
    rows = [
        (
            link(e.run_id[:12], f"runs/{e.run_id}"),
            e.training_run or "–",
            e.tier,
            e.environment,
            moment(e.created_at),
            cost_text(e.forecast),
            cost_text(e.actual) if e.actual else "not yet",
        )
        for e in entries[:_LISTED]
    ]
    columns = {
        "Run": "code",
        "Training run": "",
        "Tier": "",
        "Environment": "",
        "Began": "",
        "Forecast, at most": "",
        "Actual": "",
    }
    shown = f"{len(entries):,} evaluations are in the ledger; the newest {min(len(entries), _LISTED)} are shown."
    ledger = listing(
        "ledger", "Cost ledger, newest first", columns, rows, notes=(shown,), empty="Nothing was evaluated yet."
    )
    return html(Page(title="Costs", here="costs", sections=(_budgets(store), ledger)), viewer)


def _budgets(store: Store) -> Section:
    """What is left of each budget: what stops the next selection or release."""
    rows = [
        (
            line.budget.title,
            line.measure.replace("_", " "),
            f"{line.limit:,.6g}",
            f"{line.used:,.6g}",
            f"{line.reserved:,.6g}",
            f"{line.left:,.6g}",
            f"{line.n_runs:,}",
        )
        for line in budget_lines(store, load_config(Settings().config), now())
    ]
    columns = {
        "Budget": "",
        "Measure": "",
        "Limit": "number",
        "Used": "number",
        "Reserved by runs under way": "number",
        "Left": "number",
        "Runs": "number",
    }
    return listing(
        "budgets",
        "Budgets",
        columns,
        rows,
        title="Budgets",
        empty="No budget is configured: nothing is refused for its cost.",
    )
