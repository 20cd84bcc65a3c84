"""Runs: a list with filters, and one run with all that its report has, its cost, and where its items are."""

from __future__ import annotations

from typing import get_args

from fastapi import APIRouter

from checkpoint_eval.api.access import READ
from checkpoint_eval.api.archive import Archive
from checkpoint_eval.pages.page import API, Field, Form, Page, Section, html, link, listing, moment, outward, table
from checkpoint_eval.pages.viewer import Visitor
from eval_tasks.publish import build_view
from eval_tasks.records import Run
from eval_tasks.records.benchmark import Tier
from eval_tasks.records.run import RunStatus
from eval_tasks.report import figures, resolution, sentences, tables
from eval_tasks.report.numbers import cost_text
from eval_tasks.report.tables import Table
from eval_tasks.report.view import ReportView
from eval_tasks.store import Store

router = APIRouter(dependencies=READ)

_ON_A_PAGE = 50
_COLUMNS = {"Run": "code", "Training run": "", "Step": "number", "Suite": "", "Tier": "", "Status": "", "Began": ""}


@router.get("/runs")
def runs(
    store: Archive,
    viewer: Visitor,
    training_run: str = "",
    tier: str = "",
    suite: str = "",
    status: str = "",
    after: str = "",
) -> str:
    """Runs that fit every filter, newest first."""
    found = store.catalog.runs(
        training_run=training_run or None,
        tier=tier or None,
        suite=suite or None,
        status=status or None,
        after=store.catalog.run(after).run_id if after else None,
        limit=_ON_A_PAGE + 1,
    )
    shown = found[:_ON_A_PAGE]
    asked = {"training_run": training_run, "tier": tier, "suite": suite, "status": status}
    further = [link("Older runs", "runs", **asked, after=shown[-1].run_id)] if len(found) > _ON_A_PAGE else []
    section = Section(
        title="",
        name="list",
        forms=(
            Form(
                action="runs",
                method="get",
                submit="Filter",
                fields=(
                    Field(name="training_run", label="Training run", value=training_run),
                    Field(name="suite", label="Suite", value=suite),
                    Field(name="tier", label="Tier", value=tier, options=_any(get_args(Tier))),
                    Field(name="status", label="Status", value=status, options=_any(get_args(RunStatus))),
                ),
            ),
        ),
        tables=(runs_table("runs", "Runs, newest first", shown),),
        links=tuple(further),
        empty="No run fits. Checkpoints are evaluated as they land; a release is started from its page.",
    )
    return html(Page(title="Runs", here="runs", sections=(section,)), viewer)


def runs_table(name: str, caption: str, found: list[Run]) -> Table:
    """Runs, each with a link to its page."""
    rows = [
        (
            link(run.run_id[:12], f"runs/{run.run_id}"),
            link(run.training_run, f"training-runs/{run.training_run}") if run.training_run else "–",
            str(run.step),
            f"{run.request.suite}@{run.request.suite_version}",
            run.tier,
            run.status,
            moment(run.created_at),
        )
        for run in found
    ]
    return table(name, caption, _COLUMNS, rows)


def _any(values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return (("", "any"), *((value, value) for value in values))


@router.get("/runs/{run_id}")
def run(store: Archive, viewer: Visitor, run_id: str) -> str:
    """One run: numbers with intervals and companions, guard, what it could have seen, environment, cost, digests."""
    found = store.catalog.run(run_id)
    comparisons = store.catalog.comparisons(found.run_id)
    own = next((c for c in comparisons if c.run_a == found.run_id), None)
    view = build_view(store, run_id=found.run_id, comparison_id=own.comparison_id if own else None)
    title = sentences.title(view)
    page = Page(
        title=f"{title[:1].upper()}{title[1:]}",
        here="runs",
        crumbs=(("runs", "Runs"),),
        lead=(f"Run {found.run_id}, {found.status}, tier {found.tier}", *(filter(None, [found.reason]))),
        verdict=(sentences.verdict(own), sentences.exploratory(own)) if own else (),
        alarms=(*view.suspect, *_guard_alarm(view)),
        sections=(
            _links(store, found),
            Section(
                title="Scores",
                name="scores",
                notes=tuple(filter(None, [resolution.could_have_seen(view)])),
                figures=tuple(figures.score_figures(view)),
                tables=(tables.scorecard(view.measurements, "Scores in points unless the metric names another unit"),),
                empty="No numbers yet: they are there once the run is aggregated.",
            ),
            listing(
                "comparisons",
                "Where this run is an arm, newest first",
                {"Comparison": "code", "Candidate": "code", "Baseline": "code", "Verdict": ""},
                [
                    (
                        link(c.comparison_id[:12], f"comparisons/{c.comparison_id}"),
                        link(c.run_a[:12], f"runs/{c.run_a}"),
                        link(c.run_b[:12], f"runs/{c.run_b}"),
                        sentences.verdict(c),
                    )
                    for c in comparisons
                ],
                title="Comparisons",
                empty="Not compared with any run.",
            ),
            *_details(store, view),
        ),
    )
    return html(page, viewer)


def _guard_alarm(view: ReportView) -> tuple[str, ...]:
    if view.guard is None or view.guard.passed:
        return ()
    return (
        f"Guard found {len(view.guard.excursions)} excursions: those numbers are shown, not compared, not published.",
    )


def _links(store: Store, found: Run) -> Section:
    exports = [
        outward(f"Report as {report}", f"{API}/runs/{found.run_id}/report?format={report}")
        for report in sorted({report.format for report in store.catalog.reports(found.run_id)} & {"html", "json"})
    ]
    names = [store.catalog.benchmark_by_id(benchmark_id).name for benchmark_id in found.request.benchmark_ids]
    browse = [link(f"Items of {name}", f"runs/{found.run_id}/items", benchmark=name) for name in names]
    return Section(title="", name="links", links=(*exports, *(browse if found.status == "closed" else [])))


def _details(store: Store, view: ReportView) -> list[Section]:
    run = view.run
    assert run is not None
    sections = [
        Section(
            title="Contamination",
            name="contamination",
            tables=(tables.companions(view.measurements),),
            empty="No numbers yet.",
        ),
        Section(title="Resolution", name="resolution", tables=(tables.resolution(view),), empty="No numbers yet."),
    ]
    if view.guard is not None:
        checks = tables.pairs("checks", "What guard checked", dict(sorted(view.guard.checks.items())), "Check")
        sections.append(
            Section(
                title="Guard",
                name="guard",
                tables=tuple(t for t in (checks, tables.contract(view.contract) if view.contract else None) if t),
            )
        )
    how = tables.how_run(view)
    cost = store.catalog.cost(run.run_id)
    costs = (
        {"forecast, at most": cost_text(cost.forecast), "actual": cost_text(cost.actual) if cost.actual else "not yet"}
        if cost
        else {}
    )
    machine = tables.pairs(
        "environment",
        "Hardware and software",
        dict(sorted(view.environment.components.items())) if view.environment else {},
        "Name",
    )
    sections.append(
        Section(
            title="How it was run",
            name="how",
            tables=tuple(t for t in (how, tables.pairs("cost", "Cost", costs, "") if costs else None, machine) if t),
        )
    )
    sections.append(Section(title="Digests", name="identity", tables=(tables.identity(view),)))
    return sections
