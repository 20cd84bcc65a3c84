"""Alerts, with the five raw outputs that each shows, and who has seen them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from fastapi import Form as FormField
from fastapi.responses import RedirectResponse, Response

from checkpoint_eval.api.access import EVALUATE, READ
from checkpoint_eval.api.archive import Archive, now
from checkpoint_eval.pages.page import Field, Form, Page, Section, Text, html, line, link, listing, moment, url
from checkpoint_eval.pages.viewer import Visitor

router = APIRouter()

_LISTED = 100
_STATES = (("", "any"), ("open", "not acknowledged"), ("seen", "acknowledged"))


@router.get("/alerts", dependencies=READ)
def alerts(store: Archive, viewer: Visitor, state: str = "", kind: str = "", training_run: str = "") -> str:
    """Alerts, newest first."""
    found = store.catalog.alerts(
        kind=kind or None,
        training_run=training_run or None,
        acknowledged={"open": False, "seen": True}.get(state),
        limit=_LISTED,
    )
    rows = [
        (
            link(a.title, f"alerts/{a.alert_id}"),
            a.kind,
            a.training_run or "–",
            moment(a.created_at),
            a.acknowledged_by or "nobody",
        )
        for a in found
    ]
    columns = {"Alert": "", "Kind": "", "Training run": "", "Raised": "", "Acknowledged by": ""}
    by = Form(
        action="alerts",
        method="get",
        submit="Filter",
        fields=(
            Field(name="state", label="State", value=state, options=_STATES),
            Field(name="kind", label="Kind", value=kind),
            Field(name="training_run", label="Training run", value=training_run),
        ),
    )
    section = listing("list", "Alerts, newest first", columns, rows, forms=(by,), empty="No alert fits.")
    return html(Page(title="Alerts", here="alerts", sections=(section,)), viewer)


@router.get("/alerts/{alert_id}", dependencies=READ)
def alert(store: Archive, viewer: Visitor, alert_id: str) -> str:
    """One alert: what it says, whom it was told, and the form that acknowledges it."""
    found = store.catalog.find_alert(alert_id)
    told = [(d.channel, d.state, str(d.attempts), d.error or "–") for d in store.catalog.deliveries(found.alert_id)]
    form = Form(
        action=f"alerts/{found.alert_id}/acknowledge",
        name="acknowledge",
        submit="Acknowledge",
        right="evaluate",
        fields=(Field(name="reason", label="Reason", rows=3, required=True, hint="What became of it."),),
    )
    said = (f"Acknowledged by {found.acknowledged_by}: {found.acknowledged_reason}",) if found.acknowledged_by else ()
    page = Page(
        title=found.title,
        here="alerts",
        crumbs=(("alerts", "Alerts"),),
        lead=(line("{}, raised {}", found.kind, moment(found.created_at)),),
        verdict=said,
        sections=(
            Section(
                title="",
                name="body",
                links=(link(f"Run {found.run_id[:12]}", f"runs/{found.run_id}"),) if found.run_id else (),
                texts=(Text(label="What it says", body=found.body),),
            ),
            listing(
                "told",
                "Channels",
                {"Channel": "", "State": "", "Attempts": "number", "Last error": ""},
                told,
                title="Told",
                empty="No channel was configured: it is in the log of deliver_alerts.",
            ),
            *(() if said else (Section(title="Acknowledge it", name="acknowledge", forms=(form,)),)),
        ),
    )
    return html(page, viewer)


@router.post("/alerts/{alert_id}/acknowledge", dependencies=EVALUATE)
def acknowledge(
    store: Archive, viewer: Visitor, alert_id: str, reason: Annotated[str, FormField(min_length=1, max_length=20_000)]
) -> Response:
    """Say, in the caller's name, what became of an alert."""
    found = store.catalog.find_alert(alert_id)
    store.catalog.acknowledge_alert(found.alert_id, viewer.name, reason, now())
    return RedirectResponse(url(f"alerts/{found.alert_id}"), 303)
