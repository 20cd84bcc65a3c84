"""What all commands print with: JSON for machines, tables for people, a progress bar on standard error."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from eval_tasks.records import Measurement
from eval_tasks.report.numbers import amount, interval
from eval_tasks.settings import Settings
from eval_tasks.store import Store, open_store


def cache_dir() -> Path:
    """Where remote checkpoints are kept by digest (CHECKPOINT_EVAL_CACHE, or `cache` in the home folder)."""
    return Path(os.environ.get("CHECKPOINT_EVAL_CACHE") or Settings().home / "cache")


def out_option(purpose: str) -> Callable[[Any], Any]:
    """`--out FILE`, refused before any work when the file cannot be written there."""
    return click.option("--out", type=click.Path(dir_okay=False, path_type=Path), callback=_writable, help=purpose)


def _writable(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    if path is not None and not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise click.BadParameter(
            f"{str(path)!r} cannot be written; name a file in a folder that exists", context, parameter
        )
    return path


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")


def opened() -> Store:
    """The store of this process's settings, created where it is not there yet."""
    return open_store(Settings())


def report_width() -> int:
    """Columns of a report on this terminal (COLUMNS where it is set), 60 at the least; 100 where there is none."""
    return min(120, max(60, shutil.get_terminal_size((100, 24)).columns))


def score_text(measurement: Measurement) -> str:
    """A score with its interval, as reports write it."""
    return f"{amount(measurement.score, measurement.unit)} {interval(measurement.ci95, measurement.unit)}"


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False, indent=2))


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table on standard output; an empty one says so."""
    if not rows:
        click.echo(f"{title}: none")
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*("" if cell is None else str(cell) for cell in row))
    Console().print(table)


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error, as a callback (done, total); on a pipe, a line at every tenth part."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task(label, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
        return
    last = -1

    def report(done: int, total: int) -> None:
        nonlocal last
        tenth = 10 if not total else 10 * done // total
        if tenth != last:
            last = tenth
            click.echo(f"{label}: {done} of {total}", err=True)

    yield report
