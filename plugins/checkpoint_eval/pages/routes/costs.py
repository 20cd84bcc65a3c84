"""The cost ledger: what evaluations were expected to cost, and what they did."""

from __future__ import annotations

from fastapi import APIRouter

from checkpoint_eval.api.access import READ, User
from checkpoint_eval.api.archive import Archive
from checkpoint_eval.pages.page import Page, Section, html, link, moment, table
from eval_tasks.report.numbers import cost_text

router = APIRouter(dependencies=READ)

_LISTED = 100


@router.get("/costs")
def costs(store: Archive, user: User) -> str:
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
    section = Section(
        title="",
        name="ledger",
        notes=(f"{len(entries):,} evaluations are in the ledger; the newest {min(len(entries), _LISTED)} are shown.",),
        tables=(table("costs", "Cost ledger, newest first", columns, rows),),
        empty="Nothing was evaluated yet.",
    )
    return html(Page(title="Costs", here="costs", sections=(section,)), user=user.get_name())
