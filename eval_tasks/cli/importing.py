"""`runs import`: recorded responses become a run and go through the flow's later steps at once."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import click

from eval_tasks.aggregate import aggregate
from eval_tasks.cli.output import opened, out_option, report_width
from eval_tasks.errors import UserError
from eval_tasks.grade import grade
from eval_tasks.guard import guard
from eval_tasks.join_contamination import join_contamination
from eval_tasks.publish import publish
from eval_tasks.recorded import import_run
from eval_tasks.records import ImportedRows


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--benchmark", required=True, help="NAME or NAME@VERSION of a registered benchmark.")
@click.option("--format", "form", type=click.Choice(["jsonl", "lm-eval", "inspect"]), required=True)
@click.option("--name", required=True, help="What the run is called in lists, reports and comparisons.")
@click.option("--model", default="", help="What the responses are said to come from.")
@click.option("--training-run", default="", help="With --step: where in a training run the model stands.")
@click.option("--step", type=int, default=None)
@out_option("Also write the HTML report to this file.")
def import_command(
    files: tuple[Path, ...],
    benchmark: str,
    form: Literal["jsonl", "lm-eval", "inspect"],
    name: str,
    model: str,
    training_run: str,
    step: int | None,
    out: Path | None,
) -> int:
    """Take recorded responses as a run: score, measure and guard them. Exits with 1 when something is quarantined."""
    if bool(training_run) != (step is not None):
        raise UserError("--training-run and --step go together: give both or neither")
    source = ImportedRows(format=form, files=(), name=name, model=model, training_run=training_run, step=step or 0)
    store, now = opened(), datetime.now(UTC).isoformat(timespec="seconds")
    imported = import_run(store, benchmark=benchmark, source=source, files=files, now=now)
    run_id = imported.run_id
    grade(store, run_id=run_id)
    aggregate(store, run_id)
    join_contamination(store, run_id=run_id)
    report = guard(store, run_id=run_id, now=now)
    published = publish(store, run_id=run_id, now=now, width=report_width())
    click.echo(published.terminal)
    if out:
        out.write_bytes(store.blobs.get(published.html_blob))
    empty = f"; {imported.n_empty} rows have no answer" if imported.n_empty else ""
    click.echo(f"imported {imported.n_rows} answers to {imported.n_items} items{empty}")
    click.echo(f"run {run_id}\nreport {out or published.html_uri}")
    return 0 if report.passed else 1
