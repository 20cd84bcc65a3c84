"""The entry point: groups of commands, and errors to exit codes in one table."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence

import click

from eval_tasks import __version__
from eval_tasks.cli import archive, comparing, instruments, steps
from eval_tasks.errors import (
    BlockedError,
    CheckpointGoneError,
    DataError,
    EvalError,
    InfraError,
    NotComparableError,
    UserError,
)

_EXIT_CODES: tuple[tuple[type[EvalError], int], ...] = (
    (NotComparableError, 3),
    (UserError, 2),
    (InfraError, 4),
    (DataError, 5),
    (CheckpointGoneError, 6),
    (BlockedError, 7),
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="checkpoint-eval")
@click.option("-v", "--verbose", is_flag=True, help="Log what is done to standard error.")
def cli(verbose: bool) -> None:
    """Evaluate training checkpoints and compare them with known error bars.

    The store and the catalog are where CHECKPOINT_EVAL_HOME (or _STORE_URI, _CATALOG_URL) says; by default in
    ~/.checkpoint-eval.
    """
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )


for module in (instruments, steps, comparing, archive):
    for command in module.COMMANDS:
        cli.add_command(command)


def exit_code(error: EvalError) -> int:
    """The exit code of an error of the library."""
    return next(code for kind, code in (*_EXIT_CODES, (EvalError, 1)) if isinstance(error, kind))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; errors of the library become one line on standard error and an exit code."""
    try:
        result = cli.main(args=list(arguments) if arguments is not None else None, standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        return 130
    except click.ClickException as error:
        error.show()
        return 2
    except EvalError as error:
        click.echo(f"error: {error}", err=True)
        return exit_code(error)
    return result if isinstance(result, int) else 0
