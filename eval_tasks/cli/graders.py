"""`graders`: who scores, human labels, and samples to be labelled."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from pathlib import Path

import click

from eval_tasks.cli import agreement, judging
from eval_tasks.cli.output import json_option, opened, print_json, print_table
from eval_tasks.errors import UserError, did_you_mean
from eval_tasks.graders import import_labels, read_labels
from eval_tasks.plan.selection import choose_items
from eval_tasks.prompts import render_text
from eval_tasks.records import BenchmarkVersion, Run, to_json
from eval_tasks.store import Store


@click.group("graders")
def graders_group() -> None:
    """Who scores: people and models beside a benchmark's own scorer, and whether they may."""


@graders_group.command("list")
@json_option
def graders_list(as_json: bool) -> None:
    """List registered graders, and the grader in use of each benchmark that has one on record."""
    catalog = opened().catalog
    graders, in_use = catalog.graders(), catalog.graders_in_use()
    if as_json:
        benchmarks = {g.grader: [use.benchmark for use in in_use if use.grader == g.grader] for g in graders}
        print_json(
            [
                to_json(g) | {"grader": g.grader, "reproducible": g.reproducible, "in_use": benchmarks[g.grader]}
                for g in graders
            ]
        )
        return
    rows = [
        (g.grader, g.kind, "yes" if g.reproducible else "NO", g.created_at, "yes" if g.adopted else "no")
        for g in graders
    ]
    print_table("graders", ("grader", "kind", "reproducible", "since (UTC)", "qualified"), rows)
    print_table(
        "in use",
        ("benchmark", "grader", "since (UTC)", "why"),
        [(u.benchmark, u.grader, u.since, u.reason) for u in in_use],
    )


@graders_group.command("import-labels")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--benchmark", required=True)
@click.option("--run", "run_id", required=True)
@click.option("--grader", required=True, help="NAME or NAME@VERSION; corrected labels need another version.")
def graders_import_labels(file: Path, benchmark: str, run_id: str, grader: str) -> None:
    """Take human labels (CSV or JSONL: item_id, rater, label or score) of a run's outputs as a grader."""
    store = opened()
    run = store.catalog.run(run_id)
    labels = read_labels(file)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    version = _benchmark(store, run, benchmark)
    name = import_labels(store, labels, run_id=run.run_id, benchmark=version, grader=grader, now=now)
    n_items, n_raters = len({label.item_id for label in labels}), len({label.rater for label in labels})
    click.echo(f"{name}: {len(labels)} labels of {n_items} items by {n_raters} raters, run {run.run_id}")


@graders_group.command("sample")
@click.argument("run")
@click.option("--benchmark", required=True)
@click.option("--n", "n_items", type=click.IntRange(min=1), default=100, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True)
def graders_sample(run: str, benchmark: str, n_items: int, seed: int, out: Path) -> None:
    """Write a stratified sample of a run's outputs to a CSV to be labelled. The scorer's verdicts are not in it.

    The same seed chooses the same items in every run, so that two runs' labels can be paired.
    """
    store = opened()
    found = store.catalog.run(run)
    version = _benchmark(store, found, benchmark)
    chosen = choose_items(store.blobs.get_items(version.items_blob), n_items, seed)
    shots = store.blobs.get_items(version.few_shot_blob) if version.few_shot_blob else []
    answers = {r.item_id: r for r in store.responses.rows(found.run_id, version.benchmark_id)}
    present = [item for item in chosen if item.item_id in answers]
    with out.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(("item_id", "stratum", "prompt", "output", "gold", "rater", "label"))
        for item in present:
            prompt, output = render_text(version, item, shots), answers[item.item_id].output
            writer.writerow((item.item_id, item.stratum or "", prompt, output, item.target, "", ""))
    click.echo(f"{len(present)} of {n_items} items to {out}; fill in rater and label, then graders import-labels")


def _benchmark(store: Store, run: Run, name: str) -> BenchmarkVersion:
    versions = [store.catalog.benchmark_by_id(benchmark_id) for benchmark_id in run.request.benchmark_ids]
    by_name = {version.name: version for version in versions}
    if name not in by_name:
        raise UserError(f"run {run.run_id[:12]} has no benchmark {name!r}; {did_you_mean(name, by_name)}")
    return by_name[name]


for _command in (*agreement.COMMANDS, *judging.COMMANDS):
    graders_group.add_command(_command)

COMMANDS = (graders_group,)
