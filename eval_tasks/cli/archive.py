"""Commands that read the archive of runs."""

from __future__ import annotations

from dataclasses import asdict

import click

from eval_tasks.breakdown import By, breakdown
from eval_tasks.cli.importing import import_command
from eval_tasks.cli.output import json_option, opened, print_json, print_table, score_text
from eval_tasks.cli.training import curve_command
from eval_tasks.errors import UserError, did_you_mean
from eval_tasks.publish import suspicions
from eval_tasks.records import ImportedRows, Run, to_json
from eval_tasks.report.numbers import amount, interval
from eval_tasks.report.sentences import score_name
from eval_tasks.scoring import metric_of
from eval_tasks.store import Store


@click.group("runs")
def runs_group() -> None:
    """List, show and import runs."""


@runs_group.command("list")
@click.option("--training-run", default=None)
@click.option("--tier", type=click.Choice(["health", "selection", "release"]), default=None)
@click.option("--limit", type=int, default=30, show_default=True)
@json_option
def runs_list(training_run: str | None, tier: str | None, limit: int, as_json: bool) -> None:
    """List runs, newest first."""
    runs = opened().catalog.runs(training_run=training_run, tier=tier, limit=limit)
    if as_json:
        print_json([to_json(r) for r in runs])
        return
    rows = [(r.run_id[:12], *_place(r), r.tier, r.request.suite, r.status, r.created_at, r.environment) for r in runs]
    print_table(
        "runs", ("run", "training run", "step", "tier", "suite", "status", "created (UTC)", "environment"), rows
    )


def _place(run: Run) -> tuple[str, int | None]:
    """Training run and step; an import without them goes by its name."""
    if isinstance(run.request.engine, ImportedRows) and not run.training_run:
        return run.request.engine.name, None
    return run.training_run, run.step


@runs_group.command("show")
@click.argument("run")
@json_option
def runs_show(run: str, as_json: bool) -> None:
    """Show one run: status, scores with intervals, guard, reports. RUN is a run id or its beginning."""
    store = opened()
    found = store.catalog.run(run)
    measurements = store.catalog.measurements(found.run_id)
    if as_json:
        print_json({"run": to_json(found), "measurements": [to_json(m) for m in measurements]})
        return
    click.echo(
        f"run {found.run_id}: {found.training_run} step {found.step}, {found.tier}, {found.status} {found.reason}"
    )
    if found.judging is not None:
        click.echo(
            f"it judges outputs of run {found.judging.run_id} for {found.judging.grader}; it is no evaluation of its "
            "checkpoint"
        )
    if found.origin != "engine":
        click.echo(f"its rows are {found.origin}: the engine's guarantees do not cover them")
    for reason in suspicions(store, found):
        click.echo(f"SUSPECT: {reason}")
    click.echo(f"request {found.request.request_digest}\nconfig  {found.config_digest}")
    rows = [
        (m.benchmark, score_name(m), score_text(m), m.n, m.n_attempted, m.contamination, m.quarantine_reason or None)
        for m in measurements
    ]
    print_table("scores", ("benchmark", "metric", "score", "n", "attempted", "contamination", "quarantined"), rows)
    for report in store.catalog.reports(found.run_id):
        click.echo(f"{report.format} report {store.blobs.uri(report.blob_digest)}")


@runs_group.command("breakdown")
@click.argument("run")
@click.option("--benchmark", required=True)
@click.option("--by", type=click.Choice(["stratum", "category"]), default="stratum", show_default=True)
@click.option("--metric", default=None, help="Default: the benchmark's primary metric.")
@json_option
def runs_breakdown(run: str, benchmark: str, by: By, metric: str | None, as_json: bool) -> None:
    """Show one benchmark's score per stratum or category, and their averages, with intervals. It tests nothing."""
    store = opened()
    found = store.catalog.run(run)
    benchmark_id = _benchmark_id(store, found, benchmark)
    shown = breakdown(store, found.run_id, benchmark_id, by=by, metric=metric)
    if as_json:
        print_json(asdict(shown))
        return
    record = store.catalog.benchmark_by_id(benchmark_id)
    unit = metric_of(record, metric or record.primary_metric).unit
    rows: list[tuple[object, ...]] = [
        (g.group, amount(g.score, unit), interval(g.ci95, unit), g.n, g.n_missing) for g in shown.groups
    ]
    rows += [
        (f"{name} average over {what}", amount(a.score, unit), interval(a.ci95, unit), a.n, "")
        for name, what, a in (("micro", "items", shown.micro), ("macro", "groups", shown.macro))
    ]
    print_table(f"{benchmark}, {metric or record.primary_metric} by {by}", (by, "score", "ci95", "n", "missing"), rows)


@runs_group.command("items")
@click.argument("run")
@click.option("--benchmark", required=True)
@click.option("--status", default=None)
@click.option("--limit", type=int, default=20, show_default=True)
def runs_items(run: str, benchmark: str, status: str | None, limit: int) -> None:
    """Print result rows of one benchmark as JSON lines, in item_id order."""
    import json

    store = opened()
    found = store.catalog.run(run)
    shown = 0
    for response in store.responses.rows(found.run_id, _benchmark_id(store, found, benchmark)):
        if shown >= limit:
            break
        if status is None or response.status == status:
            click.echo(json.dumps(to_json(response), ensure_ascii=False, sort_keys=True))
            shown += 1


def _benchmark_id(store: Store, run: Run, name: str) -> str:
    by_name = {store.catalog.benchmark_by_id(i).name: i for i in run.request.benchmark_ids}
    if name not in by_name:
        raise UserError(f"run {run.run_id[:12]} has no benchmark {name!r}; {did_you_mean(name, by_name)}")
    return by_name[name]


runs_group.add_command(import_command)
runs_group.add_command(curve_command)

COMMANDS = (runs_group,)
