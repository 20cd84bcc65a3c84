"""`irt`: item-response weights of a benchmark, abilities by them, and the items its owner should look at."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from eval_tasks.abilities import Weights, ability_of
from eval_tasks.calibrate import FLAGS, calibrate, item_report
from eval_tasks.cli.output import json_option, opened, out_option, print_json, print_table
from eval_tasks.errors import UserError
from eval_tasks.records import BenchmarkVersion, Calibration, to_json
from eval_tasks.report import ReportView, report_html
from eval_tasks.report.abilities import ability_cell
from eval_tasks.report.item_response import calibration_sentences, item_table
from eval_tasks.scoring import metric_of
from eval_tasks.stats.item_scores import item_scores
from eval_tasks.store import Store

_version_option = click.option(
    "--calibration", "version", type=click.IntRange(min=1), default=None, help="Its number. Default: the newest."
)


@click.group("irt")
def irt_group() -> None:
    """Item-response weights: calibrate them on past runs, and see which items are worth keeping."""


@irt_group.command("calibrate")
@click.argument("benchmark")
@click.argument("runs", nargs=-1)
@click.option("--exclude", multiple=True, help="A run to leave out, such as one that is to be measured by the weights.")
@click.option("--metric", default=None, help="Default: the benchmark's primary metric.")
@json_option
def irt_calibrate(
    benchmark: str, runs: tuple[str, ...], exclude: tuple[str, ...], metric: str | None, as_json: bool
) -> None:
    """Freeze weights of BENCHMARK (NAME or NAME@VERSION) from RUNS; none: every sound run of the archive."""
    store = opened()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    chosen = list(runs) if runs else None
    made = calibrate(store, _benchmark(store, benchmark), now=now, run_ids=chosen, exclude=exclude, metric=metric)
    _print(made, as_json)


@irt_group.command("show")
@click.argument("benchmark")
@_version_option
@click.option("--run", "runs", multiple=True, help="A run to measure by the weights.")
@json_option
def irt_show(benchmark: str, version: int | None, runs: tuple[str, ...], as_json: bool) -> None:
    """Show a calibration of BENCHMARK, and the abilities of other runs by it."""
    store = opened()
    found = _calibration(store, benchmark, version)
    _print(found, as_json, [_measured(store, found, run) for run in runs])


@irt_group.command("items")
@click.argument("benchmark")
@_version_option
@click.option("--flag", "flags", type=click.Choice(FLAGS), multiple=True, help="Only these. Default: all.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Most items listed.")
@out_option("Also write the list, with questions and gold answers, as one HTML file.")
@json_option
def irt_items(
    benchmark: str, version: int | None, flags: tuple[Any, ...], limit: int, out: Path | None, as_json: bool
) -> None:
    """List the items of BENCHMARK to look at, the likeliest mislabelled first, each with n and intervals."""
    store = opened()
    report = item_report(store, _calibration(store, benchmark, version), flags=flags or FLAGS, limit=limit)
    if out:
        out.write_text(report_html(ReportView(item_report=report)), "utf-8")
    if as_json:
        print_json(to_json(report))
        return
    for sentence in calibration_sentences(report.calibration):
        click.echo(sentence)
    table = item_table(report)
    print_table(table.caption, [c.heading for c in table.columns], table.rows)


def _benchmark(store: Store, name: str) -> BenchmarkVersion:
    bare, _, version = name.partition("@")
    return store.catalog.benchmark(bare, version or None)


def _calibration(store: Store, name: str, version: int | None) -> Calibration:
    benchmark = _benchmark(store, name)
    known = store.catalog.calibrations([benchmark.benchmark_id])
    if not known:
        raise UserError(
            f"{benchmark.name}@{benchmark.version} has no calibration: python -m eval_tasks irt calibrate {name}"
        )
    return store.catalog.calibration(benchmark.benchmark_id, version)


def _measured(store: Store, calibration: Calibration, name: str) -> dict[str, Any]:
    """A run's ability by this calibration alone."""
    run = store.catalog.run(name)
    benchmark = store.catalog.benchmark_by_id(calibration.benchmark_id)
    key = (benchmark.benchmark_id, calibration.metric, calibration.grader)
    rows = store.scores.read(run.run_id, benchmark.benchmark_id, grader=calibration.grader, metric=calibration.metric)
    items = item_scores(rows, metric_of(benchmark, calibration.metric), clustered=benchmark.cluster_key is not None)
    ids = rows["item_id"].combine_chunks().filter(pa.array(items.scored))
    weights = Weights(store, [calibration])
    return {"run": run.run_id, "ability": ability_of(weights, run, key, ids, items.values, items.clusters)}


def _print(calibration: Calibration, as_json: bool, measured: list[dict[str, Any]] | None = None) -> None:
    if as_json:
        abilities = [m | {"ability": m["ability"] and to_json(m["ability"])} for m in measured or []]
        named = {"calibration_id": calibration.calibration_id, "reference": calibration.reference}
        print_json(to_json(calibration) | named | {"abilities": abilities})
        return
    for sentence in calibration_sentences(calibration):
        click.echo(sentence)
    click.echo(f"calibration {calibration.calibration_id}, made {calibration.created_at}")
    if measured:
        rows = [(m["run"][:12], ability_cell(m["ability"])) for m in measured]
        print_table("abilities", ("run", "ability ± standard error"), rows)


COMMANDS = (irt_group,)
