"""`graders register`, `show` and `judge`: model graders, and scorers, on outputs that are stored."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from eval_tasks.cli.computing import compute_here
from eval_tasks.cli.output import cache_dir, json_option, opened, print_json
from eval_tasks.errors import BlockedError, UserError, did_you_mean
from eval_tasks.gate import gate
from eval_tasks.graders import environment_for, find_grader, finish_grading, plan_grading, register_judge
from eval_tasks.plan import plan_uri
from eval_tasks.records import Plan, to_json
from eval_tasks.settings import Config, Settings, load_config
from eval_tasks.store import Grader, Store

NOT_REPRODUCIBLE = "NOT REPRODUCIBLE: replies of an endpoint"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@click.command("register")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def register_command(files: tuple[Path, ...]) -> None:
    """Register judges from YAML FILES. The same content again is a no-op; other content needs another version."""
    store = opened()
    for file in files:
        grader = register_judge(store, file, now=_now(), cache_dir=cache_dir())
        click.echo(f"{grader.grader}: {_kind(grader)}, since {grader.created_at}")


@click.command("show")
@click.argument("name")
def show_command(name: str) -> None:
    """Show one grader as JSON: what it is made of, its digests, whether it is reproducible and adopted.

    NAME is as `graders list` has it, with or without its version; a judge's `judge/` may be left out.
    """
    grader = _grader(opened(), name)
    document = to_json(grader) | {"grader": grader.grader, "reproducible": grader.reproducible}
    if grader.judge is not None:
        document["digests"] = grader.judge.parts
    print_json(document)


@click.command("judge")
@click.argument("run")
@click.option("--benchmark", required=True)
@click.option("--grader", required=True, help="A judge's NAME or NAME@VERSION, or a scorer's name.")
@click.option("--environment", default=None, help="Default: the first live one that the judge's engine fits.")
@click.option("--plan-only", is_flag=True, help="Run nothing here: say which shards are to be run.")
@json_option
def judge_command(
    run: str, benchmark: str, grader: str, environment: str | None, plan_only: bool, as_json: bool
) -> None:
    """Judge a run's stored outputs on one benchmark; the evaluated model never runs.

    RUN is a run id or its beginning. What is judged already is not judged again.
    """
    store = opened()
    config = load_config(Settings().config)
    run_id = store.catalog.run(run).run_id
    made = _plan(store, config, run_id, benchmark, grader, environment)
    if made is not None and plan_only:
        _tell(made, plan_uri(store, made), as_json)
        return
    reference = _finished(store, config, run_id, benchmark, grader, made)
    _tell_scores(store, run_id, benchmark, reference, as_json)


def judge_here(
    store: Store, config: Config, run_id: str, benchmark: str, grader: str, environment: str | None = None
) -> str:
    """Judge one benchmark of a run to the end in this process; the name that the scores stand under."""
    made = _plan(store, config, run_id, benchmark, grader, environment)
    return _finished(store, config, run_id, benchmark, grader, made)


def _finished(store: Store, config: Config, run_id: str, benchmark: str, grader: str, made: Plan | None) -> str:
    if made is not None:
        compute_here(store, made, plan_uri(store, made), config)
    return finish_grading(store, run_id=run_id, benchmark_name=benchmark, grader=grader)


def _plan(
    store: Store, config: Config, run_id: str, benchmark: str, grader: str, environment: str | None
) -> Plan | None:
    versions = {b.name: b for b in map(store.catalog.benchmark_by_id, store.catalog.run(run_id).request.benchmark_ids)}
    if benchmark not in versions:
        raise UserError(f"run {run_id[:12]} has no benchmark {benchmark!r}; {did_you_mean(benchmark, versions)}")
    found = find_grader(store, grader, versions[benchmark])
    if found.judge is None:
        return None
    spec = environment_for(config, found, environment)
    made = plan_grading(
        store,
        run_id=run_id,
        benchmark_name=benchmark,
        grader=grader,
        environment=spec,
        limits=config.limits,
        cache_dir=cache_dir(),
        now=_now(),
    )
    if made is not None and not (result := gate(store, environment=spec.name)).open:
        raise BlockedError(result.reason)
    return made


def _tell(made: Plan, uri: str, as_json: bool) -> None:
    if as_json:
        print_json({"run_id": made.run_id, "plan_uri": uri, "shards": [to_json(shard) for shard in made.shards]})
        return
    click.echo(
        f"run {made.run_id}: {made.n_items} questions in {len(made.shards)} shards; once they have run, call this"
    )
    click.echo("command again")
    for shard in made.shards:
        click.echo(f"python -m eval_tasks run-shard --plan {uri} --shard {shard.shard}")


def _tell_scores(store: Store, run_id: str, benchmark: str, reference: str, as_json: bool) -> None:
    import pyarrow.compute as pc

    ids = store.catalog.run(run_id).request.benchmark_ids
    found = next(b for b in map(store.catalog.benchmark_by_id, ids) if b.name == benchmark)
    table = store.scores.read(
        run_id, found.benchmark_id, reference, found.primary_metric, ["status", "reason", "value"]
    )
    statuses = {row["values"]: row["counts"] for row in pc.value_counts(table["status"]).to_pylist()}
    mean = pc.mean(table["value"]).as_py()
    grader = store.catalog.grader_named(reference)
    reproducible = grader is None or grader.reproducible
    if as_json:
        print_json(
            {"grader": reference, "run_id": run_id, "statuses": statuses, "mean": mean, "reproducible": reproducible}
        )
        return
    counts = ", ".join(f"{n} {status}" for status, n in sorted(statuses.items()))
    click.echo(
        f"{reference} on {found.name} of run {run_id[:12]}: {counts}; mean {'none' if mean is None else f'{mean:.4f}'}"
    )
    if not reproducible:
        click.echo(NOT_REPRODUCIBLE)
    reasons = pc.value_counts(table["reason"].filter(pc.not_equal(table["reason"], ""))).to_pylist()
    for row in sorted(reasons, key=lambda row: (-row["counts"], row["values"]))[:5]:
        click.echo(f"  {row['counts']} x {row['values']}")


def _grader(store: Store, name: str) -> Grader:
    known = store.catalog.graders()
    for grader in reversed(known):
        names = {grader.grader, grader.name, f"{grader.name}@{grader.version}"}
        if name in names | {each.removeprefix("judge/") for each in names}:
            return grader
    raise UserError(f"no grader {name!r} is registered; {did_you_mean(name, (g.name for g in known))}")


def _kind(grader: Grader) -> str:
    if grader.judge is None:
        return grader.kind
    return f"{grader.judge.kind} judge" + ("" if grader.reproducible else f", {NOT_REPRODUCIBLE}")


COMMANDS = (register_command, show_command, judge_command)
