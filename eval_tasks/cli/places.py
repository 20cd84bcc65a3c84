"""Commands on places: the catalog's schema and the configuration file."""

from __future__ import annotations

import click

from eval_tasks.cli.output import json_option, print_json, print_table
from eval_tasks.settings import Settings, load_config
from eval_tasks.store import migrate


@click.command("migrate")
def migrate_command() -> None:
    """Create the catalog, or bring it to this version's schema."""
    settings = Settings()
    migrate(settings.catalog_url)
    click.echo(f"catalog is current: {settings.catalog_url.split('@')[-1]}")


@click.command("config")
@json_option
def config_command(as_json: bool) -> None:
    """Check the configuration file and show what it says."""
    settings = Settings()
    config = load_config(settings.config)
    if as_json:
        print_json(config.model_dump(mode="json"))
        return
    click.echo(
        f"{settings.config}: {'valid' if settings.config and settings.config.exists() else 'absent, defaults hold'}"
    )
    print_table(
        "training runs",
        ("name", "uri", "quiet s", "marker", "health suite", "selection suite (every)"),
        [
            (
                run.name,
                run.uri,
                run.quiet_seconds,
                run.marker,
                run.health.suite if run.health else None,
                f"{run.selection.suite} ({run.selection.every})" if run.selection else None,
            )
            for run in config.training_runs
        ],
    )
    print_table(
        "environments",
        ("name", "image", "device", "dtype", "live"),
        [(e.name, e.image, e.device, e.dtype, e.live) for e in config.environments],
    )


COMMANDS = (migrate_command, config_command)
