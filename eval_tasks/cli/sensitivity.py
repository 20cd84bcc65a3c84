"""`sensitivity`: how far an instrument moves under choices that should not matter."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from eval_tasks.checkpoint import fetch
from eval_tasks.cli.output import cache_dir, json_option, opened, print_json, print_table, progress_bar
from eval_tasks.determinism import sensitivity
from eval_tasks.records import Sensitivity, to_json
from eval_tasks.report.numbers import change
from eval_tasks.resolve import resolve
from eval_tasks.settings import Settings, load_config


@click.group("sensitivity")
def sensitivity_group() -> None:
    """Measure how far choice order, worked examples, dtype and templates move a checkpoint's scores."""


@sensitivity_group.command("run")
@click.argument("checkpoint_uri")
@click.option("--suite", required=True, help="NAME or NAME@VERSION.")
@click.option("--environment", default=None)
@click.option("--draws", type=int, default=2, show_default=True, help="Choice orders, and draws of worked examples.")
@click.option("--seed", type=int, default=0, show_default=True)
@json_option
def sensitivity_run(
    checkpoint_uri: str, suite: str, environment: str | None, draws: int, seed: int, as_json: bool
) -> None:
    """Measure it in this process, and keep it. No part of the engine's variance, which a night measures."""
    store = opened()
    spec = load_config(Settings().config).environment(environment)
    checkpoint = resolve(store, checkpoint_uri=checkpoint_uri, training_run="adhoc")
    with progress_bar("sensitivity") as progress:
        study = sensitivity(
            store,
            checkpoint=checkpoint,
            folder=fetch(checkpoint, cache_dir()),
            suite=suite,
            engine=spec.engine_config(),
            n_draws=draws,
            seed=seed,
            progress=progress,
            now=datetime.now(UTC).isoformat(timespec="seconds"),
        )
    _show(study, as_json)


@sensitivity_group.command("list")
@json_option
def sensitivity_list(as_json: bool) -> None:
    """List studies, newest first."""
    studies = opened().catalog.sensitivities()
    if as_json:
        print_json([to_json(study) for study in studies])
        return
    rows = [(s.study_id[:12], s.suite, s.checkpoint_id[:12], len(s.shifts), s.recorded_at) for s in studies]
    print_table("sensitivity studies", ("study", "suite", "checkpoint", "variants", "recorded (UTC)"), rows)


@sensitivity_group.command("show")
@click.argument("study_id")
@json_option
def sensitivity_show(study_id: str, as_json: bool) -> None:
    """Show one study."""
    _show(opened().catalog.sensitivity(study_id), as_json)


def _show(study: Sensitivity, as_json: bool) -> None:
    if as_json:
        print_json({"study_id": study.study_id, **to_json(study)})
        return
    rows = [
        (s.benchmark, s.metric, s.varied, s.variant, change(s.delta, s.unit), change(s.se, s.unit), s.n_flipped, s.n)
        for s in study.shifts
    ]
    columns = ("benchmark", "metric", "varied", "variant", "moved", "se", "items changed", "n")
    print_table(f"sensitivity of {study.suite}, study {study.study_id[:12]}", columns, rows)
    for sentence in study.not_varied:
        click.echo(f"not varied: {sentence}")


COMMANDS = (sensitivity_group,)
