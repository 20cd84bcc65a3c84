"""The entry point: groups of commands, and errors to exit codes in one table."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Sequence

import click

from eval_tasks import __version__, log_lines
from eval_tasks.errors import (
    BlockedError,
    CheckpointGoneError,
    DataError,
    EvalError,
    InfraError,
    NotComparableError,
    UserError,
    did_you_mean,
)

_EXIT_CODES: tuple[tuple[type[EvalError], int], ...] = (
    (NotComparableError, 3),
    (UserError, 2),
    (InfraError, 4),
    (DataError, 5),
    (CheckpointGoneError, 6),
    (BlockedError, 7),
)


# A pod runs one command: it must not pay for the imports of the others.
_MODULES = {
    "migrate": "places",
    "config": "places",
    "benchmarks": "benchmarks",
    "suites": "instruments",
    "rules": "instruments",
    "convert": "converting",
    "gate": "steps",
    "resolve": "steps",
    "plan": "steps",
    "run-shard": "shard",
    "grade": "steps",
    "aggregate": "steps",
    "join-contamination": "steps",
    "guard": "steps",
    "health": "training",
    "publish": "steps",
    "evaluate": "steps",
    "compare": "comparing",
    "select": "selecting",
    "irt": "calibrating",
    "schema": "comparing",
    "diagnose": "diagnosing",
    "seeds": "seeds",
    "power": "planning",
    "runs": "archive",
    "graders": "graders",
    "regrade": "regrading",
    "landings": "landings",
    "promote": "landings",
    "contamination": "contamination",
    "alerts": "alerts",
    "budget": "budget",
    "maintenance": "maintaining",
    "environment": "machine",
    "verify-engine": "machine",
    "determinism": "determinism",
    "baselines": "determinism",
    "blocks": "blocks",
    "sensitivity": "sensitivity",
}


class _LazyGroup(click.Group):
    """Imports the module of a command when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """All commands, in the order of the flow."""
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of that name."""
        if cmd_name not in _MODULES:
            return None
        module = importlib.import_module(f"eval_tasks.cli.{_MODULES[cmd_name]}")
        commands: tuple[click.Command, ...] = module.COMMANDS
        return next(command for command in commands if command.name == cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, with close names for an unknown command."""
        if args and args[0] not in _MODULES and not args[0].startswith("-"):
            ctx.fail(f"no command {args[0]!r}; {did_you_mean(args[0], _MODULES)}")
        return super().resolve_command(ctx, args)


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="checkpoint-eval")
@click.option("-v", "--verbose", is_flag=True, help="Log what is done to standard error.")
def cli(verbose: bool) -> None:
    """Evaluate training checkpoints and compare them with known error bars.

    The store and the catalog are where CHECKPOINT_EVAL_HOME (or _STORE_URI, _CATALOG_URL) says; by default in
    ~/.checkpoint-eval.
    """
    wanted = os.environ.get(log_lines.VARIABLE) or "text"
    form = next((form for form in log_lines.FORMATS if form == wanted), None)
    if form is None:
        raise UserError(f"{log_lines.VARIABLE} is {wanted!r}; it is one of: {', '.join(log_lines.FORMATS)}")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(log_lines.formatter(form))
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler])


def exit_code(error: EvalError) -> int:
    """The exit code of an error of the library."""
    return next((code for kind, code in _EXIT_CODES if isinstance(error, kind)), 1)


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
