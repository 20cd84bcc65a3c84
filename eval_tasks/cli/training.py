"""Commands about a training run as a whole: its health at one checkpoint, and its held-out loss over steps."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from eval_tasks.cli.output import json_option, opened, print_json, print_table
from eval_tasks.health import health
from eval_tasks.loss_curves import loss_curve
from eval_tasks.records import to_json
from eval_tasks.report.health_sentences import false_alarms, finding_sentence, health_verdict
from eval_tasks.report.numbers import amount, interval


@click.command("health")
@click.argument("run")
@json_option
def health_command(run: str, as_json: bool) -> int:
    """Hold a run against earlier checkpoints of its training run; exits with 1 on an alarm.

    RUN is a run id or its beginning. A look is taken once: asking again gives what it found.
    """
    store = opened()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    look = health(store, run_id=store.catalog.run(run).run_id, now=now)
    if as_json:
        print_json(to_json(look))
    else:
        click.echo(health_verdict(look))
        for finding in look.findings:
            click.echo(f"  {finding_sentence(finding)}")
        for note in look.notes:
            click.echo(f"  {note}")
        click.echo(f"{false_alarms(look)}\nNot detected: " + "; ".join(look.not_detected) + ".")
    return 1 if look.alarms else 0


@click.command("curve")
@click.argument("training_run")
@click.option("--benchmark", required=True, help="A benchmark of kind `loss`.")
@click.option("--metric", default=None, help="Default: the benchmark's primary metric.")
@click.option("--tier", type=click.Choice(["health", "selection", "release"]), default=None)
@json_option
def curve_command(training_run: str, benchmark: str, metric: str | None, tier: str | None, as_json: bool) -> None:
    """Print a training run's held-out loss over steps, each with its interval. Accuracy is refused, with the reason."""
    store = opened()
    curve = loss_curve(store, training_run, store.catalog.benchmark(benchmark), metric=metric, tier=tier)
    if as_json:
        print_json(to_json(curve))
        return
    rows = [(p.step, amount(p.score, curve.unit), interval(p.ci95, curve.unit), p.run_id[:12]) for p in curve.points]
    print_table(f"{benchmark} {curve.metric} of {training_run} ({curve.unit})", ("step", "loss", "ci95", "run"), rows)


COMMANDS = (health_command,)
