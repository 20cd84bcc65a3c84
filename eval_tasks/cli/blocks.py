"""`blocks`: what holds evaluation, its explanation by a person, and the runs it has put in doubt."""

from __future__ import annotations

import getpass
from datetime import UTC, datetime
from typing import get_args

import click

from eval_tasks.blocking import block_lines
from eval_tasks.cli.output import json_option, opened, print_json, print_table
from eval_tasks.determinism import clear, explain
from eval_tasks.records import to_json
from eval_tasks.records.determinism import BlockOutcome


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@click.group("blocks")
def blocks_group() -> None:
    """List, show and explain blocks, and clear the runs they have put in doubt."""


@blocks_group.command("list")
@click.option("--all", "explained_too", is_flag=True, help="Explained ones too.")
@json_option
def blocks_list(explained_too: bool, as_json: bool) -> None:
    """List open blocks, oldest first."""
    catalog = opened().catalog
    found = catalog.blocks() if explained_too else catalog.open_blocks()
    if as_json:
        print_json([to_json(block) for block in found])
        return
    rows = [(b.block_id[:12], b.opened_at, b.kind, b.environment, b.reason, b.outcome or "open") for b in found]
    print_table("blocks", ("block", "opened (UTC)", "kind", "environment", "reason", "outcome"), rows)


@blocks_group.command("show")
@click.argument("block_id")
@json_option
def blocks_show(block_id: str, as_json: bool) -> None:
    """Show a block: the first differing items with both values, what became of it, and the runs in doubt."""
    catalog = opened().catalog
    block = catalog.block(block_id)
    suspects = catalog.suspects(block)
    if as_json:
        print_json({**to_json(block), "suspects": [run.run_id for run in suspects]})
        return
    click.echo(f"block {block.block_id}, {block.kind}, opened {block.opened_at} by run {block.run_id or 'unknown'}")
    for line in block_lines(block):
        click.echo(f"  {line}")
    if block.explained_at:
        click.echo(f"  {block.outcome}: {block.explanation} ({block.explained_by}, {block.explained_at})")
    rows = [(run.run_id[:12], run.training_run, run.step, run.tier, run.closed_at) for run in suspects]
    print_table("suspect runs", ("run", "training run", "step", "tier", "closed (UTC)"), rows)


@blocks_group.command("explain")
@click.argument("block_id")
@click.option("--outcome", type=click.Choice(get_args(BlockOutcome)), required=True)
@click.option("--reason", required=True)
@click.option("--by", default=None, help="Default: the user of this process.")
def blocks_explain(block_id: str, outcome: BlockOutcome, reason: str, by: str | None) -> None:
    """Explain a block, with a reason; runs that wait go on by themselves, in order."""
    block = explain(opened(), block_id, by=by or getpass.getuser(), reason=reason, outcome=outcome, now=_now())
    click.echo(f"block {block.block_id} is explained: {outcome}")


@blocks_group.command("clear")
@click.argument("block_id")
@click.option("--run", "run_ids", multiple=True, help="A suspect run; default: all that the block has put in doubt.")
@click.option("--reason", required=True)
@click.option("--by", default=None, help="Default: the user of this process.")
def blocks_clear(block_id: str, run_ids: tuple[str, ...], reason: str, by: str | None) -> None:
    """Say that suspect runs' numbers stand, with a reason; their reports are published anew without the mark."""
    cleared = clear(opened(), block_id, run_ids, by=by or getpass.getuser(), reason=reason, now=_now())
    click.echo(f"cleared {len(cleared)} runs")


COMMANDS = (blocks_group,)
