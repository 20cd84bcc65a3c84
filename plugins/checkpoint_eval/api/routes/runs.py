"""Runs: listed, looked at, started."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from checkpoint_eval.api.access import EVALUATE, READ, User
from checkpoint_eval.api.airflow_runs import trigger
from checkpoint_eval.api.archive import Archive
from checkpoint_eval.api.problems import documented
from eval_tasks.errors import UnknownError
from eval_tasks.publish import suspicions
from eval_tasks.records import GuardReport, Measurement, Run
from eval_tasks.records.benchmark import Tier
from eval_tasks.records.run import RunStatus

router = APIRouter(tags=["runs"])

# A report is a page of ours with inline styles and plots; whatever a model wrote into it must not run.
_REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"


class RunPage(BaseModel):
    """Runs, newest first. `after`: what the next page is asked for with; null at the end."""

    runs: list[Run]
    after: str | None


class RunDetail(BaseModel):
    """One run with its numbers. `suspicions`: why they are in doubt. `reports`: formats that `/report` gives."""

    run: Run
    measurements: list[Measurement]
    guard: GuardReport | None
    suspicions: list[str]
    comparisons: list[str] = Field(description="Ids of the comparisons that this run is an arm of, newest first.")
    reports: list[str]


class RunOrder(BaseModel):
    """What is to be evaluated. Names are those of the DAG's form."""

    model_config = ConfigDict(extra="forbid")

    checkpoint_uri: str = Field(min_length=1, max_length=2048)
    suite: str = Field(min_length=1, max_length=512, description="NAME or NAME@VERSION of a registered suite.")
    tier: Literal["selection", "release"] = "release"
    training_run: str = Field("adhoc", pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=255)
    step: int | None = Field(None, ge=0, le=2**53 - 1)
    baseline: str = Field("none", max_length=2048, description="A folder, a run id, previous, first or none.")
    rule: str | None = Field(None, max_length=255)
    environment: str | None = Field(None, max_length=255)
    seeds: list[str] = Field(default_factory=list, max_length=64, description="Release only: further seeds' folders.")
    notes: str = Field("", max_length=20_000, description="Release only: shown on the report.")


class StartedRun(BaseModel):
    """The Airflow run that evaluates the order. Its evaluation's run id is known once the checkpoint is resolved."""

    dag_id: str
    dag_run_id: str
    state: str
    existed: bool = Field(description="Whether the same idempotency key had started it before.")


@router.get("/runs", dependencies=READ, responses=documented(HTTPStatus.NOT_FOUND))
def runs(
    store: Archive,
    training_run: str | None = None,
    tier: Tier | None = None,
    suite: str | None = None,
    checkpoint_id: str | None = None,
    status: RunStatus | None = None,
    after: str | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> RunPage:
    """Runs that fit every filter, newest first."""
    found = store.catalog.runs(
        training_run=training_run,
        tier=tier,
        suite=suite,
        checkpoint_id=checkpoint_id,
        status=status,
        after=store.catalog.run(after).run_id if after else None,
        limit=limit + 1,
    )
    page = found[:limit]
    return RunPage(runs=page, after=page[-1].run_id if len(found) > limit else None)


@router.get("/runs/{run_id}", dependencies=READ, responses=documented(HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST))
def run(store: Archive, run_id: str) -> RunDetail:
    """One run: its status, and score, n, se, ci95 and decontaminated companion of each benchmark."""
    found = store.catalog.run(run_id)
    return RunDetail(
        run=found,
        measurements=store.catalog.measurements(found.run_id),
        guard=store.catalog.guard(found.run_id),
        suspicions=list(suspicions(store, found)),
        comparisons=[comparison.comparison_id for comparison in store.catalog.comparisons(found.run_id)],
        reports=sorted({report.format for report in store.catalog.reports(found.run_id)}),
    )


@router.get(
    "/runs/{run_id}/report",
    dependencies=READ,
    responses=documented(HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST),
    response_class=Response,
)
def report(
    store: Archive, run_id: str, wanted: Annotated[Literal["html", "json"], Query(alias="format")] = "html"
) -> Response:
    """The report that was published last, as one self-contained page or as JSON."""
    found = store.catalog.run(run_id)
    published = [row for row in store.catalog.reports(found.run_id) if row.format == wanted]
    if not published:
        raise UnknownError(f"run {found.run_id[:12]} has no {wanted} report: it was not published")
    media_type = "text/html; charset=utf-8" if wanted == "html" else "application/json"
    headers = {"Content-Security-Policy": _REPORT_POLICY, "X-Content-Type-Options": "nosniff"}
    return Response(store.blobs.get(published[-1].blob_digest), media_type=media_type, headers=headers)


@router.post(
    "/runs",
    dependencies=EVALUATE,
    status_code=HTTPStatus.ACCEPTED,
    responses=documented(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
)
def start(
    store: Archive,
    request: Request,
    user: User,
    order: RunOrder,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=255)] = None,
) -> StartedRun:
    """Start an evaluation through Airflow's own API, with the caller's rights; a release then waits for approval.

    The same `Idempotency-Key` of one user starts one run, however often it is sent.
    """
    name, _, version = order.suite.partition("@")
    store.catalog.suite(name, version or None)
    if order.rule:
        store.catalog.rule(order.rule)
    of_release = {"seeds": order.seeds, "notes": order.notes} if order.tier == "release" else {}
    conf: dict[str, Any] = {**order.model_dump(exclude={"tier", "seeds", "notes"}), **of_release}
    started = trigger(request, f"evaluate_{order.tier}", conf, user_id=user.get_id(), key=idempotency_key)
    return StartedRun(**started)
