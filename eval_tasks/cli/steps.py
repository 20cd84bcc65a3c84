"""Commands that run the flow's steps one by one, and `evaluate`, which runs them all in this process."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from eval_tasks.aggregate import aggregate
from eval_tasks.budgets import account, reserve
from eval_tasks.checkpoint import fetch
from eval_tasks.cli.computing import compute_here
from eval_tasks.cli.output import (
    cache_dir,
    json_option,
    opened,
    out_option,
    print_json,
    print_table,
    progress_bar,
    report_width,
    score_text,
)
from eval_tasks.determinism import check_again
from eval_tasks.errors import BlockedError, UserError
from eval_tasks.gate import gate
from eval_tasks.grade import grade
from eval_tasks.guard import guard
from eval_tasks.health import health
from eval_tasks.join_contamination import join_contamination
from eval_tasks.plan import plan, plan_uri
from eval_tasks.publish import publish
from eval_tasks.records import Checkpoint, Plan, to_json
from eval_tasks.report.numbers import cost_text
from eval_tasks.report.sentences import score_name
from eval_tasks.resolve import resolve
from eval_tasks.settings import Settings, load_config
from eval_tasks.store import Store


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@click.command("gate")
@click.option("--environment", default=None, help="Default: the first live one of the configuration.")
def gate_command(environment: str | None) -> None:
    """Say whether evaluation may start in an environment."""
    name = load_config(Settings().config).environment(environment).name
    result = gate(opened(), environment=name)
    if not result.open:
        raise BlockedError(result.reason)
    click.echo(f"open: {result.reason}")


@click.command("resolve")
@click.argument("checkpoint_uri")
@click.option("--training-run", default="adhoc", show_default=True)
@click.option("--step", type=int, default=None, help="Default: the last number in the folder's name.")
@json_option
def resolve_command(checkpoint_uri: str, training_run: str, step: int | None, as_json: bool) -> None:
    """Validate and hash the checkpoint at CHECKPOINT_URI, and record it."""
    with progress_bar("resolve") as progress:
        checkpoint = resolve(
            opened(), checkpoint_uri=checkpoint_uri, training_run=training_run, step=step, progress=progress
        )
    if as_json:
        print_json(to_json(checkpoint))
        return
    size = checkpoint.n_bytes / 1e6
    click.echo(f"{checkpoint.checkpoint_id}  step {checkpoint.step}, {len(checkpoint.files)} files, {size:.1f} MB")


def make_plan(
    store: Store,
    checkpoint: Checkpoint,
    suite: str,
    environment: str | None,
    *,
    dtype: str | None = None,
    seed: int = 0,
    repeat: int = 0,
) -> Plan:
    """Plan `suite` on a checkpoint in an environment of the configuration, and put its forecast into the ledger."""
    config = load_config(Settings().config)
    spec = config.environment(environment)
    made = plan(
        store,
        checkpoint=checkpoint,
        checkpoint_dir=fetch(checkpoint, cache_dir()),
        suite=suite,
        environment=spec,
        limits=config.limits,
        engine=spec.engine_config(dtype),
        seed=seed,
        repeat=repeat,
        now=_now(),
    )
    if not store.responses.is_closed(made.run_id):
        reserve(store, made, spec, config, _now())
    return made


@click.command("plan")
@click.argument("checkpoint_id")
@click.option("--suite", required=True, help="NAME or NAME@VERSION.")
@click.option("--environment", default=None)
@click.option("--dtype", type=click.Choice(["float32", "bfloat16", "float16"]), default=None)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--repeat", type=int, default=0, show_default=True, help="A wanted repeat of the same request.")
@json_option
def plan_command(
    checkpoint_id: str, suite: str, environment: str | None, dtype: str | None, seed: int, repeat: int, as_json: bool
) -> None:
    """Cut a suite on a resolved checkpoint into shards."""
    store = opened()
    checkpoint = store.catalog.checkpoint(checkpoint_id)
    planned = make_plan(store, checkpoint, suite, environment, dtype=dtype, seed=seed, repeat=repeat)
    uri = plan_uri(store, planned)
    if as_json:
        print_json({"run_id": planned.run_id, "plan_uri": uri, "shards": [to_json(s) for s in planned.shards]})
        return
    click.echo(f"run {planned.run_id}: {planned.n_items} items in {planned.n_batches} batches\nplan {uri}")
    entry = store.catalog.cost(planned.run_id)
    if entry is not None:
        click.echo(f"forecast, at most: {cost_text(entry.forecast)}")
    print_table(
        "shards",
        ("shard", "group", "items", "cost (tokens)"),
        [(s.shard, s.group, s.n_items, s.cost_tokens) for s in planned.shards],
    )


@click.command("grade")
@click.argument("run")
def grade_command(run: str) -> None:
    """Close a run's rows and score them. RUN is a run id or its beginning."""
    store = opened()
    with progress_bar("grade") as progress:
        report = grade(store, run_id=store.catalog.run(run).run_id, progress=progress)
    twice = check_again(store, report.run_id, _now())
    account(store, report.run_id, load_config(Settings().config))
    for benchmark, n in report.n_rows.items():
        click.echo(f"{benchmark}: {n} rows by {report.graders[benchmark]}")
    if twice is not None:
        click.echo(f"computed twice: {twice.n_items} items, {twice.n_differing} differ")


@click.command("aggregate")
@click.argument("run")
@json_option
def aggregate_command(run: str, as_json: bool) -> None:
    """Turn a run's scores into measurements with error bars."""
    store = opened()
    measurements = aggregate(store, store.catalog.run(run).run_id)
    if as_json:
        print_json([to_json(m) for m in measurements])
        return
    for m in measurements:
        click.echo(f"{m.benchmark} {score_name(m)}: {score_text(m)} (n = {m.n})")


@click.command("join-contamination")
@click.argument("run")
def join_contamination_command(run: str) -> None:
    """Give each number its decontaminated companion."""
    store = opened()
    report = join_contamination(store, run_id=store.catalog.run(run).run_id)
    click.echo(
        f"checked: {', '.join(report.checked) or 'none'}; never checked: {', '.join(report.never_checked) or 'none'}"
    )


@click.command("guard")
@click.argument("run")
@click.option("--stored", is_flag=True, help="Show what guard found, and check nothing anew.")
@json_option
def guard_command(run: str, stored: bool, as_json: bool) -> int:
    """Check a run's rows and numbers; exits with 1 when something is quarantined."""
    store = opened()
    run_id = store.catalog.run(run).run_id
    report = store.catalog.guard(run_id) if stored else guard(store, run_id=run_id, now=_now())
    if report is None:
        raise UserError(f"guard has not looked at run {run_id}: leave --stored out")
    contract = store.blobs.get_json(report.contract_blob) if report.contract_blob else None
    if as_json:
        print_json({**to_json(report), "contract": contract})
        return 0 if report.passed else 1
    for check, outcome in report.checks.items():
        click.echo(f"{check}: {outcome}")
    if contract is not None:
        print_table(
            f"data contract, by {contract['by']}",
            ("", "rows", "check", "observed", "expected"),
            [
                (
                    "" if r["passed"] else "BROKEN",
                    f"{r['benchmark']} {r['part']}",
                    r["check"],
                    r["observed"],
                    r["expected"],
                )
                for r in contract["results"]
            ],
        )
    return 0 if report.passed else 1


@click.command("publish")
@click.argument("run")
@click.option("--comparison", default=None, help="Id of a comparison to show with it.")
@out_option("Also write the HTML report to this file.")
def publish_command(run: str, comparison: str | None, out: Path | None) -> None:
    """Write a run's report (HTML and JSON) to the store."""
    store = opened()
    published = publish(
        store, run_id=store.catalog.run(run).run_id, comparison_id=comparison, now=_now(), width=report_width()
    )
    if out:
        out.write_bytes(store.blobs.get(published.html_blob))
    click.echo(str(out) if out else published.html_uri)


@click.command("evaluate")
@click.argument("checkpoint_uri")
@click.option("--suite", required=True, help="NAME or NAME@VERSION.")
@click.option("--training-run", default="adhoc", show_default=True)
@click.option("--step", type=int, default=None)
@click.option("--environment", default=None)
@click.option("--dtype", type=click.Choice(["float32", "bfloat16", "float16"]), default=None)
@click.option("--seed", type=int, default=0, show_default=True)
@out_option("Also write the HTML report to this file.")
def evaluate_command(
    checkpoint_uri: str,
    suite: str,
    training_run: str,
    step: int | None,
    environment: str | None,
    dtype: str | None,
    seed: int,
    out: Path | None,
) -> int:
    """Run every step on one checkpoint in this process, without Airflow. The rows are those that pods would give."""
    store = opened()
    config = load_config(Settings().config)
    spec = config.environment(environment)
    result = gate(store, environment=spec.name)
    if not result.open:
        raise BlockedError(result.reason)
    with progress_bar("resolve") as progress:
        checkpoint = resolve(
            store, checkpoint_uri=checkpoint_uri, training_run=training_run, step=step, progress=progress
        )
    planned = make_plan(store, checkpoint, suite, environment, dtype=dtype, seed=seed)
    uri = plan_uri(store, planned)
    compute_here(store, planned, uri, config)
    grade(store, run_id=planned.run_id)
    check_again(store, planned.run_id, _now())
    account(store, planned.run_id, config)
    aggregate(store, planned.run_id)
    join_contamination(store, run_id=planned.run_id)
    report = guard(store, run_id=planned.run_id, now=_now())
    look = None
    if store.catalog.run(planned.run_id).tier == "health":
        look = health(store, run_id=planned.run_id, now=_now())
    published = publish(store, run_id=planned.run_id, now=_now(), width=report_width())
    click.echo(published.terminal)
    if out:
        out.write_bytes(store.blobs.get(published.html_blob))
    click.echo(f"run {planned.run_id}\nreport {out or published.html_uri}")
    return 0 if report.passed and not (look and look.alarms) else 1


COMMANDS = (
    gate_command,
    resolve_command,
    plan_command,
    grade_command,
    aggregate_command,
    join_contamination_command,
    guard_command,
    publish_command,
    evaluate_command,
)
