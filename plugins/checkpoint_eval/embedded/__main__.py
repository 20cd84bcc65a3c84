"""`python -m checkpoint_eval.embedded up|down|status`: the embedded installation from a terminal."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from checkpoint_eval.embedded import control
from checkpoint_eval.embedded.home import EmbeddedError


@click.group()
def embedded() -> None:
    """Airflow and the local pod API on this machine, on loopback."""


_home = click.option(
    "--home", type=click.Path(path_type=Path), default=Path.home() / ".checkpoint-eval", show_default=True
)


@embedded.command("up")
@_home
@click.option("--port", type=int, default=None, help="Of the UI; default 8080, or a free one.")
def up_command(home: Path, port: int | None) -> None:
    """Start, or find running, and wait until healthy."""
    click.echo(f"starting Airflow and the local pod API under {home} ...")
    endpoint = control.up(home, port=port)
    click.echo(f"Airflow UI {endpoint.url}\nuser {endpoint.user}\npassword {endpoint.password}")


@embedded.command("down")
@_home
def down_command(home: Path) -> None:
    """Stop everything; what was evaluated stays."""
    click.echo("stopped" if control.down(home) else f"nothing runs under {home}")


@embedded.command("status")
@_home
def status_command(home: Path) -> None:
    """Say whether it runs; exits with 1 when not."""
    running = control.is_up(home)
    click.echo("up" if running else "down")
    sys.exit(0 if running else 1)


if __name__ == "__main__":
    try:
        embedded()
    except EmbeddedError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
