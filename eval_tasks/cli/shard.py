"""`run-shard`: what a pod runs. Imports as little as it can: every pod pays for it."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click

from eval_tasks.cli.output import cache_dir, json_option, opened, print_json, progress_bar
from eval_tasks.run import Progress, run_shard
from eval_tasks.settings import Settings, load_config


@click.command("run-shard")
@click.option("--plan", "uri", required=True, help="The plan's URI, as `plan` printed it.")
@click.option("--shard", type=int, required=True)
@json_option
def run_shard_command(uri: str, shard: int, as_json: bool) -> None:
    """Compute one shard of a plan. What a pod runs; SIGTERM ends it after the batch in hand."""
    # A pod's log is all that is seen of it.
    logging.getLogger("eval_tasks").setLevel(logging.INFO)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    owner = f"{os.environ.get('POD_NAME') or socket.gethostname()}:{os.getpid()}"
    try:
        with _progress(shard) as progress:
            report = run_shard(
                opened(),
                plan_uri=uri,
                shard=shard,
                owner=owner,
                cache_dir=cache_dir(),
                limits=load_config(Settings().config).limits,
                node=os.environ.get("NODE_NAME", socket.gethostname()),
                stop=stop,
                progress=progress,
            )
    except Exception as error:
        _leave_reason(f"{type(error).__name__}: {error}")
        raise
    if as_json:
        print_json(asdict(report))
        return
    click.echo(
        f"shard {report.shard} of run {report.run_id}: {report.n_computed} of {report.n_items} items computed here in "
        f"{report.seconds:.1f} s, environment {report.env_fingerprint[:12]}"
    )


@contextmanager
def _progress(shard: int) -> Iterator[Progress]:
    """A bar where a person watches; a pod's log has lines of its own."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    with progress_bar(f"shard {shard}") as progress:
        yield progress


def _leave_reason(reason: str) -> None:
    """Write why the pod ends to its termination message, where Kubernetes shows it."""
    path = Path(os.environ.get("TERMINATION_MESSAGE_PATH", "/dev/termination-log"))
    if path.parent.is_dir() and (path.exists() or "TERMINATION_MESSAGE_PATH" in os.environ):
        path.write_text(reason[:4000], "utf-8")


COMMANDS = (run_shard_command,)
