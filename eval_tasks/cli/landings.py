"""Commands on checkpoints that landed: the ledger, and asking for the selection tier."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from eval_tasks.cli.output import json_option, opened, print_json, print_table
from eval_tasks.errors import UserError
from eval_tasks.settings import Settings, load_config


@click.command("landings")
@click.option("--training-run", default=None)
@json_option
def landings_command(training_run: str | None, as_json: bool) -> None:
    """List the landing ledger: every checkpoint version that was seen, and what became of it."""
    rows = opened().catalog.landings(training_run=training_run)
    if as_json:
        print_json(
            [
                {
                    "landing_id": row.landing.landing_id,
                    "training_run": row.landing.training_run,
                    "step": row.landing.step,
                    "uri": row.landing.uri,
                    "state": row.state,
                    "reason": row.reason,
                    "dag_runs": list(row.dag_runs),
                    "finished": list(row.finished),
                    "skipped": list(row.skipped),
                    "promoted": row.promoted,
                }
                for row in rows
            ]
        )
        return
    print_table(
        "landings",
        ("landing", "training run", "step", "state", "reason", "DAG runs"),
        [
            (
                r.landing.landing_id[:12],
                r.landing.training_run,
                r.landing.step,
                r.state,
                r.reason,
                "\n".join([*r.dag_runs, *(f"{dag_run} (skipped)" for dag_run in r.skipped)]),
            )
            for r in rows
        ],
    )


@click.command("promote")
@click.argument("training_run")
@click.argument("step", type=click.IntRange(min=0))
def promote_command(training_run: str, step: int) -> None:
    """Ask for the selection tier on a checkpoint, as a PROMOTE file in its folder does; the watcher starts it."""
    run = load_config(Settings().config).training_run(training_run)
    if run.selection is None:
        raise UserError(f"training run {training_run!r} has no selection tier; give it one under 'selection'")
    store = opened()
    rows = [row for row in store.catalog.landings(training_run) if row.state not in ("gone", "superseded")]
    found = [row for row in rows if row.landing.step == step]
    if not found:
        steps = ", ".join(str(row.landing.step) for row in rows[-5:]) or "none"
        raise UserError(f"training run {training_run!r} has no checkpoint at step {step}; the last ones: {steps}")
    row = found[-1]
    if row.state == "broken":
        raise UserError(f"step {step} of {training_run!r} is broken and cannot be evaluated: {row.reason}")
    store.catalog.mark_landing(row.landing.landing_id, promoted=True, now=datetime.now(UTC))
    click.echo(f"step {step} of {training_run} is promoted; it is {row.state} now")


COMMANDS = (landings_command, promote_command)
