"""Commands on this machine: what it is told apart by, and whether the engine's contract holds on it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eval_tasks.cli.output import json_option, opened, print_json, print_table, progress_bar
from eval_tasks.records import EngineConfig, to_json

if TYPE_CHECKING:
    from eval_tasks.engine import Check

_SHOWN_ITEMS = 5
_NOT_PROMISED = (
    "the reference path promises no equality of bits between thread counts, with the engine's own rows, or between "
    "a sequence and its parts; a row is the same again, alone and in any company because it is computed alone"
)


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options for what of an engine's configuration a machine can do or not."""
    options = (
        click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True),
        click.option(
            "--dtype", type=click.Choice(["float32", "bfloat16", "float16"]), default="float32", show_default=True
        ),
        click.option("--threads", type=int, default=1, show_default=True),
        click.option(
            "--attention",
            type=click.Choice(["tile", "reference"]),
            default="tile",
            show_default=True,
            help="reference: transformers' own forward, slow, for any architecture.",
        ),
        click.option("--tensor-parallel", type=int, default=1, show_default=True, help="Processes that share a model."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group("environment", invoke_without_command=True)
@engine_options
@json_option
@click.pass_context
def environment_command(context: click.Context, /, as_json: bool, **engine: Any) -> None:
    """Print this machine's environment, component by component, and its fingerprint."""
    if context.invoked_subcommand is not None:
        return
    from eval_tasks.environment import describe_environment

    environment = describe_environment(EngineConfig(**engine))
    if as_json:
        print_json({"env_fingerprint": environment.env_fingerprint, "components": dict(environment.components)})
        return
    print_table("environment", ("component", "value"), sorted(environment.components.items()))
    click.echo(f"env_fingerprint {environment.env_fingerprint}")


@environment_command.command("list")
@json_option
def environment_list(as_json: bool) -> None:
    """List the environments of the configuration, with the fingerprints that their pods reported."""
    from eval_tasks.settings import Settings, load_config

    catalog = opened().catalog
    specs = load_config(Settings().config).environments
    seen = {spec.name: catalog.fingerprints_of(spec.name) for spec in specs}
    if as_json:
        print_json(
            [{**spec.model_dump(mode="json"), "fingerprints": seen[spec.name], "state": spec.state} for spec in specs]
        )
        return
    rows = [
        (
            spec.name,
            spec.state,
            spec.image,
            "\n".join(fingerprint[:12] for fingerprint in seen[spec.name]) or "none yet",
        )
        for spec in specs
    ]
    print_table("environments", ("name", "state", "image", "fingerprints, the last one first"), rows)


@environment_command.command("diff")
@click.argument("a")
@click.argument("b")
@json_option
def environment_diff(a: str, b: str, as_json: bool) -> int:
    """Explain what differs between two environments; exits with 1 when anything does.

    A and B are fingerprints or their beginnings, names of environments (what their pods reported last), or 'here'.
    """
    from eval_tasks.environment import describe_environment, explain_difference

    catalog = opened().catalog
    both = [describe_environment(EngineConfig()) if x == "here" else catalog.find_environment(x) for x in (a, b)]
    sentences = explain_difference(*both)
    if as_json:
        print_json(
            {"a": both[0].env_fingerprint, "b": both[1].env_fingerprint, "same": not sentences, "differs": sentences}
        )
    else:
        for sentence in sentences:
            click.echo(sentence)
        click.echo(f"{len(sentences)} of {len({*both[0].components, *both[1].components})} components differ")
    return 1 if sentences else 0


@click.command("verify-engine")
@click.argument("checkpoint", type=click.Path(exists=True, file_okay=False, path_type=Path))
@engine_options
@click.option("-q", "--quiet", is_flag=True, help="Print one line.")
@json_option
def verify_engine_command(checkpoint: Path, quiet: bool, as_json: bool, **engine: Any) -> int:
    """Run about 200 items of all shapes through the engine in every way that must not matter.

    Exits with 1 when a promise does not hold on this machine for CHECKPOINT.
    """
    from eval_tasks.engine import verify_engine
    from eval_tasks.environment import describe_environment

    config = EngineConfig(**engine)
    began = time.monotonic()
    if as_json or quiet or not sys.stderr.isatty():
        checks = verify_engine(checkpoint, config)
    else:
        with progress_bar("verify-engine") as progress:
            checks = verify_engine(checkpoint, config, progress)
    if config.attention == "reference":
        click.echo(_NOT_PROMISED, err=True)
    seconds = time.monotonic() - began
    held = all(check.passed for check in checks)
    summary = _summary(checks, seconds)
    if as_json:
        print_json(
            {
                "passed": held,
                "checkpoint": str(checkpoint),
                "engine": to_json(config),
                "env_fingerprint": describe_environment(config).env_fingerprint,
                "seconds": round(seconds, 3),
                "checks": [asdict(check) for check in checks],
            }
        )
    elif quiet:
        click.echo(summary)
    else:
        rows = [(c.name, "yes" if c.passed else "NO", c.n_items, f"{c.seconds:.1f}", _some(c)) for c in checks]
        print_table("engine contract", ("varied", "same bits", "items", "seconds", "differing items"), rows)
        click.echo(summary)
    return 0 if held else 1


def _summary(checks: Sequence[Check], seconds: float) -> str:
    held = [check for check in checks if check.passed]
    most = max((check.n_items for check in checks), default=0)
    line = f"{len(held)} of {len(checks)} promises hold, on {most} items, in {seconds:.1f} s"
    broken = [check.name for check in checks if not check.passed]
    return line + (f"; broken: {', '.join(broken)}" if broken else "")


def _some(check: Check) -> str:
    """The first items that differ, and how many more do."""
    more = len(check.differing) - _SHOWN_ITEMS
    return ", ".join(check.differing[:_SHOWN_ITEMS]) + (f" and {more} more" if more > 0 else "")


COMMANDS = (environment_command, verify_engine_command)
