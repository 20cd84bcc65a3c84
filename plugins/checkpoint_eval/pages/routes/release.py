"""Starting a release: what it asks, what the suite can find before anything is spent, and the DAG run it becomes."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi import Form as FormField
from fastapi.responses import RedirectResponse, Response

from checkpoint_eval.api.access import EVALUATE, READ, User
from checkpoint_eval.api.archive import Archive
from checkpoint_eval.api.routes.runs import RunOrder
from checkpoint_eval.api.routes.runs import start as start_run
from checkpoint_eval.pages.page import Field, Form, Page, Section, html, table, url
from checkpoint_eval.pages.viewer import Visitor
from eval_tasks.report.numbers import amount, duration
from eval_tasks.resolution import Asked, suite_resolution
from eval_tasks.settings import Settings, load_config

router = APIRouter()

_TARGET = 0.01


@router.get("/release", dependencies=READ)
def release(store: Archive, viewer: Visitor, suite: str = "") -> str:
    """The form, and what each registered suite, or the one that is asked for, could find."""
    suites = store.catalog.suites()
    wanted = [s for s in suites if not suite or suite in (s.name, f"{s.name}@{s.version}")]
    latest = {s.name: s for s in wanted}
    rows = [
        (
            line.suite,
            line.benchmark,
            f"{line.n:,}",
            amount(line.mde, line.unit),
            f"{line.n_needed:,}" if line.n_needed else "–",
            duration(line.device_seconds),
        )
        for line in suite_resolution(store, list(latest.values()), Asked(target=_TARGET))
    ]
    columns = {
        "Suite": "",
        "Benchmark": "",
        "Items": "number",
        "Finds": "number",
        "Items for 1 point": "number",
        "Device time of an arm": "",
    }
    environments = tuple((e.name, e.name) for e in load_config(Settings().config).live_environments())
    form = Form(
        action="release",
        name="release",
        submit="Start the release",
        right="evaluate",
        fields=(
            Field(
                name="checkpoint_uri",
                label="Candidate",
                required=True,
                hint="Folder of the checkpoint, any fsspec URI.",
            ),
            Field(
                name="suite",
                label="Suite",
                options=tuple((s.name, s.name) for s in {s.name: s for s in suites}.values()),
                value=suite,
                required=True,
            ),
            Field(name="baseline", label="Baseline", value="none", hint="A folder, a run id, previous, first or none."),
            Field(
                name="rule",
                label="Decision rule",
                options=(("", "none: exploratory"), *((r.name, r.name) for r in store.catalog.rules())),
            ),
            Field(name="environment", label="Environment", options=(("", "the first live one"), *environments)),
            Field(name="training_run", label="Training run", value="adhoc"),
            Field(
                name="seeds",
                label="Further seeds",
                rows=3,
                hint="Folders of the same recipe trained with other seeds, one a line.",
            ),
            Field(name="notes", label="Notes", rows=3, hint="Shown on the report."),
        ),
    )
    sections = (
        Section(
            title="What suites can find",
            name="resolution",
            notes=(
                "The smallest true difference that a paired comparison finds four times in five: ask before you spend.",
            ),
            tables=(table("resolution", "By benchmark", columns, rows),),
            empty="No suite is registered.",
        ),
        Section(
            title="Start one",
            name="start",
            notes=("It is planned first, and waits for an approval under Required actions before any pod starts.",),
            forms=(form,),
        ),
    )
    return html(Page(title="Release", here="release", sections=sections), viewer)


@router.post("/release", dependencies=EVALUATE)
def start(
    store: Archive,
    request: Request,
    user: User,
    checkpoint_uri: Annotated[str, FormField(min_length=1, max_length=2048)],
    suite: Annotated[str, FormField(min_length=1, max_length=512)],
    baseline: Annotated[str, FormField(max_length=2048)] = "none",
    rule: Annotated[str, FormField(max_length=255)] = "",
    environment: Annotated[str, FormField(max_length=255)] = "",
    training_run: Annotated[str, FormField(max_length=255, pattern=r"^[a-z0-9][a-z0-9._-]*$")] = "adhoc",
    seeds: Annotated[str, FormField(max_length=20_000)] = "",
    notes: Annotated[str, FormField(max_length=20_000)] = "",
) -> Response:
    """Start it in the caller's name, and show the DAG run."""
    order = RunOrder(
        checkpoint_uri=checkpoint_uri.strip(),
        suite=suite,
        step=None,
        baseline=baseline.strip() or "none",
        rule=rule or None,
        environment=environment or None,
        training_run=training_run,
        seeds=[line.strip() for line in seeds.splitlines() if line.strip()],
        notes=notes,
    )
    started = start_run(store, request, user, order)
    return RedirectResponse(url(f"of/{started.dag_id}/{quote(started.dag_run_id, safe='')}"), 303)
