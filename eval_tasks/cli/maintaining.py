"""`maintenance`: what may go from the store, and taking it away."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime

import click

from eval_tasks.cli.output import json_option, opened, print_json, print_table
from eval_tasks.maintenance import maintenance
from eval_tasks.report.numbers import ABSENT
from eval_tasks.settings import Settings, load_config


@click.command("maintenance")
@click.option("--apply", is_flag=True, help="Do it; without it, only say what would be done.")
@json_option
def maintenance_command(apply: bool, as_json: bool) -> None:
    """List what may go: queue rows of closed runs, files that nothing names, outputs of old health runs."""
    policy = load_config(Settings().config).maintenance
    report = maintenance(opened(), policy, datetime.now(UTC), apply=apply)
    if as_json:
        print_json(asdict(report))
        return
    done, would = ("removed", "dropped") if apply else ("to be removed", "to be dropped")
    click.echo(f"queue rows of closed runs {would}: {sum(report.compacted.values())}")
    click.echo(f"health runs whose outputs are {'' if apply else 'to be '}thinned: {len(report.thinned)}")
    rows = [(done, orphan) for orphan in report.removed] + [("in grace time", orphan) for orphan in report.waiting]
    print_table(
        "files that nothing names",
        ("", "file", "bytes", "changed (UTC)"),
        [
            (
                what,
                orphan.name,
                orphan.size,
                ABSENT if orphan.modified is None else f"{datetime.fromtimestamp(orphan.modified, UTC):%Y-%m-%d %H:%M}",
            )
            for what, orphan in rows
        ],
    )


COMMANDS = (maintenance_command,)
