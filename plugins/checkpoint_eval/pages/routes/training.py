"""Training runs: what was seen of each, its health, and held-out losses over steps. Accuracy is no progress curve."""

from __future__ import annotations

from fastapi import APIRouter

from checkpoint_eval.api.access import READ
from checkpoint_eval.api.archive import Archive
from checkpoint_eval.api.routes.training import health as health_of
from checkpoint_eval.api.routes.training import training_runs as names_of
from checkpoint_eval.pages.page import Page, Section, html, link, listing, table
from checkpoint_eval.pages.routes.runs import runs_table
from checkpoint_eval.pages.viewer import Visitor
from eval_tasks.report import health as health_report
from eval_tasks.report.health_sentences import health_verdict

router = APIRouter(dependencies=READ)

_RUNS = 30


@router.get("/training-runs")
def training_runs(store: Archive, viewer: Visitor) -> str:
    """All training runs that are configured or have landed a checkpoint."""
    rows = []
    for name in names_of(store):
        landings = store.catalog.landings(training_run=name)
        looks = store.catalog.health_looks(name)
        last = looks[-1] if looks else None
        rows.append(
            (
                link(name, f"training-runs/{name}"),
                str(len(landings)),
                str(max((row.landing.step for row in landings), default=0)),
                health_verdict(last) if last else "no look yet",
            )
        )
    columns = {"Training run": "", "Checkpoints seen": "number", "Latest step": "number", "Health, latest look": ""}
    empty = "No training run is configured, and none has landed a checkpoint."
    section = listing("list", "Training runs", columns, rows, empty=empty)
    return html(Page(title="Training runs", here="training-runs", sections=(section,)), viewer)


@router.get("/training-runs/{name}")
def training_run(store: Archive, viewer: Visitor, name: str) -> str:
    """One training run: health over steps, losses, checkpoints and their evaluations."""
    found = health_of(store, name)
    last = found.looks[-1] if found.looks else None
    looks = [
        (str(look.step), health_verdict(look), link(look.run_id[:12], f"runs/{look.run_id}"))
        for look in reversed(found.looks[-_RUNS:])
    ]
    landings = [
        (str(c.step), c.state, c.reason or "–", c.uri, ", ".join(c.dag_runs) or "–") for c in found.checkpoints[::-1]
    ]
    sections = (
        Section(
            title="Health",
            name="health",
            notes=(
                "Held-out losses over steps, with intervals. Accuracy is left out: between neighbouring checkpoints it "
                "moves by sampling noise.",
            ),
            figures=tuple(health_report.curve_figures(found.curves)),
            tables=(table("looks", f"The last {_RUNS} looks", {"Step": "", "Found": "", "Run": "code"}, looks),),
            empty="No look yet: the first health evaluation makes one.",
        ),
        Section(
            title="Runs",
            name="runs",
            tables=(runs_table("runs", "Runs, newest first", store.catalog.runs(training_run=name, limit=_RUNS)),),
            empty="Nothing was evaluated yet.",
            links=(link("All runs", "runs", training_run=name),),
        ),
        listing(
            "checkpoints",
            "What was seen in storage, latest step first",
            {"Step": "", "State": "", "Reason": "", "Place": "code", "DAG runs": "code"},
            landings,
            title="Checkpoints",
            empty="No checkpoint has landed.",
        ),
    )
    page = Page(
        title=f"Training run {name}",
        here="training-runs",
        crumbs=(("training-runs", "Training runs"),),
        alarms=(health_verdict(last),) if last and last.alarms else (),
        sections=sections,
    )
    return html(page, viewer)
