"""`determinism` and `baselines`: a night in this process, what nights found, and whose rows stand where."""

from __future__ import annotations

import getpass
import os
import socket
from datetime import UTC, datetime

import click

from eval_tasks.cli.computing import compute_here
from eval_tasks.cli.output import cache_dir, json_option, opened, print_json, print_table
from eval_tasks.determinism import PlannedNight, adopt, judge_night, plan_night, try_sentinels
from eval_tasks.records import Night, RowsComparison, to_json
from eval_tasks.settings import Config, Settings, load_config
from eval_tasks.store import Store


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@click.group("determinism")
def determinism_group() -> None:
    """Run the fixed suite in every live environment, and see what the nights found."""


@determinism_group.command("run")
@click.option("--environment", default=None, help="Default: every live one, as if this machine were all of them.")
@click.option("--night", default=None, help="What to call it; default: the present time. A night is run once.")
@json_option
def determinism_run(environment: str | None, night: str | None, as_json: bool) -> int:
    """Run a night in this process, without Airflow; exits with 1 unless every environment is good or adopted."""
    store = opened()
    config = load_config(Settings().config)
    policy = config.nightly()
    names = [config.environment(environment).name] if environment else [e.name for e in config.live_environments()]
    found: list[Night] = []
    for name in names:
        planned = plan_night(
            store, config=config, environment=name, night=night or _now(), cache_dir=cache_dir(), now=_now()
        )
        _run_here(store, config, planned)
        found.append(judge_night(store, planned, policy=policy, now=_now()))
    if as_json:
        print_json([to_json(night) for night in found])
    else:
        for one in found:
            _tell(one)
    return 0 if all(one.status in ("good", "adopted") for one in found) else 1


def _run_here(store: Store, config: Config, planned: PlannedNight) -> None:
    for what, uri in (("as ever", planned.plan_uri), ("perturbed", planned.perturbed_plan_uri)):
        compute_here(store, store.plan(uri), uri, config, label=f"{planned.environment}, {what}: ")
    if store.catalog.sentinels(planned.run_id) is None:
        try_sentinels(store, run_id=planned.run_id, cache_dir=cache_dir(), node=socket.gethostname())


def _tell(night: Night) -> None:
    click.echo(f"{night.environment}, night {night.night}: {night.status.upper()}")
    click.echo(
        f"  fingerprint {night.env_fingerprint}\n"
        f"  {night.n_items} items twice, {night.device_seconds:.1f} device-seconds"
    )
    click.echo(f"  perturbed plan: {_compared(night.perturbed)}\n  baseline: {_compared(night.against_baseline)}")
    if night.sentinels is not None:
        click.echo(f"  sentinels: {night.sentinels[1] - night.sentinels[0]} of {night.sentinels[1]} promises hold")
    for finding in night.findings:
        click.echo(f"  {finding}")


def _compared(rows: RowsComparison | None) -> str:
    if rows is None:
        return "not compared"
    if not rows.n_differing:
        return f"{rows.n_items} items are the same bit for bit"
    return f"{rows.n_differing} of {rows.n_items} items differ"


@determinism_group.command("show")
@click.option("--environment", default=None)
@click.option("--limit", type=int, default=10, show_default=True)
@json_option
def determinism_show(environment: str | None, limit: int, as_json: bool) -> None:
    """Show the last nights, what waits for a person, and what items computed twice have shown."""
    store = opened()
    config = load_config(Settings().config)
    nights = store.catalog.nights(
        environment=config.environment(environment).name if environment else None, limit=limit
    )
    if as_json:
        print_json([to_json(night) for night in nights])
        return
    if config.determinism is None:
        click.echo("no fixed suite is configured: nothing watches the environments")
    rows = [
        (
            n.night,
            n.environment,
            n.env_fingerprint[:12],
            n.status,
            _compared(n.against_baseline),
            _compared(n.perturbed),
        )
        for n in nights
    ]
    print_table("nights", ("night", "environment", "fingerprint", "status", "baseline", "perturbed plan"), rows)
    for night in nights:
        if night.status in ("failed", "candidate"):
            _tell(night)
    for block in store.catalog.open_blocks():
        click.echo(f"open block {block.block_id}: {block.reason}")


@determinism_group.command("sentinels")
@click.option("--run", required=True, help="The night's run, whose checkpoint and engine are tried.")
def determinism_sentinels(run: str) -> None:
    """Try the engine's promises beside a night's run: what a pod of the night runs. A broken one is recorded."""
    report = try_sentinels(
        opened(), run_id=run, cache_dir=cache_dir(), node=os.environ.get("NODE_NAME", socket.gethostname())
    )
    for check in report.checks:
        click.echo(f"{check.name}: {'holds' if check.passed else 'BROKEN'} on {check.n_items} items")
    click.echo(f"{len(report.checks) - len(report.broken)} of {len(report.checks)} promises hold")


@click.group("baselines")
def baselines_group() -> None:
    """List, show and adopt baselines: whose rows stand for a fingerprint on the fixed suite."""


@baselines_group.command("list")
@json_option
def baselines_list(as_json: bool) -> None:
    """List baselines, the one decided last first."""
    found = opened().catalog.baselines()
    if as_json:
        print_json([to_json(baseline) for baseline in found])
        return
    rows = [
        (b.env_fingerprint[:12], b.environment, b.suite_id[:12], b.status, b.decided_by, b.recorded_at, b.run_id[:12])
        for b in found
    ]
    print_table("baselines", ("fingerprint", "environment", "suite", "status", "by", "decided (UTC)", "run"), rows)


@baselines_group.command("show")
@click.argument("environment")
def baselines_show(environment: str) -> None:
    """Show the baselines of a fingerprint, or of what an environment of that name reported last, as JSON."""
    catalog = opened().catalog
    fingerprint = catalog.find_environment(environment).env_fingerprint
    print_json([to_json(b) for b in catalog.baselines() if b.env_fingerprint == fingerprint])


@baselines_group.command("adopt")
@click.argument("environment")
@click.option("--reason", required=True)
@click.option("--by", default=None, help="Default: the user of this process.")
@click.option("--suite-id", default=None, help="Where there are several candidates.")
def baselines_adopt(environment: str, reason: str, by: str | None, suite_id: str | None) -> None:
    """Adopt the candidate (or the refused baseline) of a fingerprint, or of what an environment reported last."""
    adopted = adopt(opened(), environment, by=by or getpass.getuser(), reason=reason, suite_id=suite_id, now=_now())
    click.echo(f"adopted run {adopted.run_id} as the baseline of {adopted.env_fingerprint}")


COMMANDS = (determinism_group, baselines_group)
