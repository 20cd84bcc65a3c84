"""Alerts, and who has seen them."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from checkpoint_eval.api.access import EVALUATE, READ, User
from checkpoint_eval.api.archive import Archive, now
from checkpoint_eval.api.problems import documented
from eval_tasks.records import Alert

router = APIRouter(tags=["alerts"])


class Acknowledgement(BaseModel):
    """What became of an alert."""

    model_config = ConfigDict(extra="forbid")

    reason: str = Field(min_length=1, max_length=20_000)


@router.get("/alerts", dependencies=READ, responses=documented())
def alerts(
    store: Archive,
    run_id: str | None = None,
    training_run: str | None = None,
    kind: str | None = None,
    acknowledged: bool | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> list[Alert]:
    """Alerts that fit every filter, newest first; the five raw outputs are in `body`."""
    return store.catalog.alerts(
        run_id=run_id, training_run=training_run, kind=kind, acknowledged=acknowledged, limit=limit
    )


@router.post(
    "/alerts/{alert_id}/acknowledge",
    dependencies=EVALUATE,
    responses=documented(HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST),
)
def acknowledge(store: Archive, user: User, alert_id: str, said: Acknowledgement) -> Alert:
    """Say, in the caller's name, what became of an alert."""
    found = store.catalog.find_alert(alert_id)
    return store.catalog.acknowledge_alert(found.alert_id, user.get_name(), said.reason, now())
