"""`select`: the best of many checkpoints."""

from __future__ import annotations

import click

from eval_tasks.cli.output import json_option, opened, print_json, print_table
from eval_tasks.errors import UserError
from eval_tasks.records import to_json
from eval_tasks.report.numbers import amount
from eval_tasks.report.selections import sentences
from eval_tasks.select import runs_of, select


@click.command("select")
@click.argument("runs", nargs=-1)
@click.option("--training-run", default=None, help="All closed runs of this training run on --suite, one a step.")
@click.option("--suite", default=None, help="NAME or NAME@VERSION, with --training-run.")
@click.option("--benchmark", default=None, help="Only this one; each benchmark is a selection of its own.")
@click.option("--split", is_flag=True, help="Select on one half of the items, confirm on the other.")
@click.option("--against", default=None, help="With --split: the run to confirm against. Default: the highest step's.")
@click.option("--alpha", type=click.FloatRange(0, 0.5, min_open=True, max_open=True), default=0.05, show_default=True)
@json_option
def select_command(
    runs: tuple[str, ...],
    training_run: str | None,
    suite: str | None,
    benchmark: str | None,
    split: bool,
    against: str | None,
    alpha: float,
    as_json: bool,
) -> None:
    """Select among RUNS, or among the checkpoints of a training run, and say how much of the best is luck."""
    if bool(runs) == bool(training_run) or bool(training_run) != bool(suite):
        raise UserError("name the runs, or give --training-run with --suite")
    if against and not split:
        raise UserError("--against names the run to confirm against: it goes with --split")
    store = opened()
    chosen = list(runs) if runs else runs_of(store, str(training_run), str(suite))
    selection = select(store, chosen, benchmark=benchmark, split=split, against=against, alpha=alpha)
    if as_json:
        print_json(to_json(selection) | {"selection_id": selection.selection_id})
        return
    for found in selection.benchmarks:
        for sentence in sentences(found):
            click.echo(sentence)
        rows = [
            (
                c.label,
                amount(c.score, found.unit),
                amount(c.shrunk, found.unit),
                "yes" if c.in_set else "no",
                c.run_id[:12],
            )
            for c in found.candidates
        ]
        print_table(found.benchmark, ("checkpoint", "score", "expected on new items", "may be the best", "run"), rows)
    for note in selection.notes:
        click.echo(note)


COMMANDS = (select_command,)
