"""A closed run's stored outputs under another grader: planned as a run of the judge, and finished as a score set.

    planned = plan_grading(store, run_id=..., benchmark_name=..., grader="helpful", ...)   # None: nothing to run
    ... run_shard for each of planned.shards, wherever, as often as it takes ...
    reference = finish_grading(store, run_id=..., benchmark_name=..., grader="helpful")

The evaluated model never runs. The same judging is the same run and the same score set, so that both may be called
again at any time. A scorer as a grader needs no run. Scores of judges and of other benchmarks' scorers stand beside the
run's own and never become its numbers by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from eval_tasks.checkpoint import fetch
from eval_tasks.errors import UserError, did_you_mean
from eval_tasks.grade import close_run
from eval_tasks.graders.questions import (
    Answer,
    question_benchmark,
    question_ids,
    questions,
    save_questions,
    stored_answers,
)
from eval_tasks.graders.rules import rule_grader, rule_scores
from eval_tasks.graders.verdicts import judged_scores
from eval_tasks.plan import plan
from eval_tasks.records import BenchmarkVersion, Judge, Judging, Plan, Run, Score, Suite, SuiteEntry
from eval_tasks.records.grader import JUDGE, RULE
from eval_tasks.scoring import metric_of, scorer_digest, scorer_names
from eval_tasks.settings import Config, EnvironmentSpec, Limits
from eval_tasks.store import Grader, Store


def find_grader(store: Store, name: str, benchmark: BenchmarkVersion) -> Grader:
    """The grader that `name` means on a benchmark.

    A judge by NAME (the newest), NAME@VERSION or the whole reference of its score sets; a scorer of this release by its
    name. Raises UserError with close names, or when a scorer does not fit the benchmark.
    """
    if name in scorer_names():
        return rule_grader(benchmark, name)
    bare, _, version = name.removeprefix(JUDGE).partition("@")
    version, _, head = version.partition("+")
    known = [grader for grader in store.catalog.graders() if grader.judge is not None]
    if bare not in {grader.judge.name for grader in known if grader.judge}:
        names = [*scorer_names(), *(grader.judge.name for grader in known if grader.judge)]
        raise UserError(f"no grader {name!r} of stored outputs; {did_you_mean(bare, names)}")
    grader = store.catalog.grader(f"{JUDGE}{bare}", version or None)
    if head and not grader.digest.startswith(head):
        raise UserError(f"grader {name!r} is not here: version {grader.version!r} of it is {grader.grader}")
    return grader


def environment_for(config: Config, grader: Grader, name: str | None = None) -> EnvironmentSpec:
    """Where a judge runs: the environment of that name, else the first live one that has what its engine needs.

    An endpoint is asked from a machine without a GPU where there is one. Raises UserError when none fits.
    """
    engine = grader.judge.engine_config if grader.judge else None
    if name is not None:
        candidates = [config.environment(name)]
    else:
        candidates = sorted((e for e in config.environments if e.live), key=lambda e: e.gpus if engine is None else 0)
    for spec in candidates:
        if engine is None or (spec.device, spec.tensor_parallel) == (engine.device, engine.tensor_parallel):
            return spec
    wanted = f"device {engine.device!r} and tensor_parallel {engine.tensor_parallel}" if engine else "any"
    found = ", ".join(f"{e.name} ({e.device}, {e.tensor_parallel})" for e in candidates) or "none that is live"
    raise UserError(f"grader {grader.grader!r} needs an environment with {wanted}; there is {found}")


def plan_grading(
    store: Store,
    *,
    run_id: str,
    benchmark_name: str,
    grader: str,
    environment: EnvironmentSpec,
    limits: Limits,
    cache_dir: Path,
    now: str,
) -> Plan | None:
    """Plan the judging of a closed run's outputs on one benchmark; None when there is nothing (left) to run.

    The plan's shards are `run_shard`'s, and `plan_uri` gives its URI. Raises UserError for a run that is not closed, a
    grader that is not known or does not fit.
    """
    run, benchmark, found = _question(store, run_id, benchmark_name, grader)
    judge = found.judge
    if judge is None or found.grader in store.scores.graders(run.run_id, benchmark.benchmark_id):
        return None
    judging = Judging(run_id=run.run_id, benchmark_id=benchmark.benchmark_id, grader=found.grader)
    if _finished_run(store, judge, judging) is not None:
        return None
    shots = store.blobs.get_items(benchmark.few_shot_blob) if benchmark.few_shot_blob else []
    items = questions(benchmark, shots, judge, list(stored_answers(store, run, benchmark)))
    if not items:
        return None
    about = f"{run.run_id} {benchmark.benchmark_id}"
    asked = save_questions(store, question_benchmark(judge, items, about=about), items, now)
    entry = SuiteEntry(benchmark=asked.name, version=asked.version, benchmark_id=asked.benchmark_id)
    suite = Suite(name=f"{JUDGE}{judge.name}", version=asked.version, tier=run.tier, entries=(entry,))
    engine = judge.engine_config
    if engine is None:
        raise UserError(f"judge {judge.name!r} is an endpoint, and this release cannot ask one")
    checkpoint = store.catalog.checkpoint(judge.checkpoint_id)
    checkpoint = replace(checkpoint, uri=judge.checkpoint_uri, training_run=suite.name, step=0)
    return plan(
        store,
        checkpoint=checkpoint,
        checkpoint_dir=fetch(checkpoint, cache_dir),
        suite=suite,
        environment=environment,
        limits=limits,
        engine=engine,
        judging=judging,
        now=now,
    )


def finish_grading(store: Store, *, run_id: str, benchmark_name: str, grader: str) -> str:
    """Store the grader's scores of a closed run's outputs on one benchmark; gives the name they stand under.

    Closes the judging run first. Raises InfraError while that has batches without a result, UserError when it was never
    planned.
    """
    run, benchmark, found = _question(store, run_id, benchmark_name, grader)
    if found.grader in store.scores.graders(run.run_id, benchmark.benchmark_id):
        return found.grader
    answers = list(stored_answers(store, run, benchmark))
    if found.judge is None:
        rows = rule_scores(benchmark, found.name.removeprefix(RULE), answers)
    else:
        rows = _judged(store, found.judge, found.grader, run, benchmark, answers)
    store.scores.write(run.run_id, benchmark.benchmark_id, found.grader, rows)
    return found.grader


def _question(store: Store, run_id: str, benchmark_name: str, grader: str) -> tuple[Run, BenchmarkVersion, Grader]:
    run = store.catalog.run(run_id)
    run.require_evaluation()
    versions = {b.name: b for b in map(store.catalog.benchmark_by_id, run.request.benchmark_ids)}
    if benchmark_name not in versions:
        raise UserError(
            f"run {run.run_id[:12]} has no benchmark {benchmark_name!r}; {did_you_mean(benchmark_name, versions)}"
        )
    benchmark = versions[benchmark_name]
    found = find_grader(store, grader, benchmark)
    if not store.responses.is_closed(run.run_id):
        raise UserError(f"run {run.run_id[:12]} is not closed: its outputs are judged once all are there; grade it")
    if found.judge is not None:
        _check_fits(found.judge, benchmark)
    return run, benchmark, found


def _check_fits(judge: Judge, benchmark: BenchmarkVersion) -> None:
    info = metric_of(benchmark, benchmark.primary_metric)
    if benchmark.kind != "generation":
        raise UserError(
            f"judge {judge.name!r} judges texts, and benchmark {benchmark.name!r} of kind {benchmark.kind!r} has none"
        )
    if (info.unit, info.higher_is_better) != ("fraction", True):
        raise UserError(
            f"judge {judge.name!r} gives values from 0 to 1, and {benchmark.primary_metric!r} of {benchmark.name!r} is "
            f"in {info.unit}"
        )
    asked = question_benchmark(judge)
    if scorer_digest(asked.scorer) != judge.verdict_digest:
        raise UserError(
            f"judge {judge.name!r} version {judge.version!r} was registered by a release that reads verdicts "
            "otherwise; register it under a new version, or use that release"
        )


def _runs_of(store: Store, judge: Judge, judging: Judging) -> list[tuple[Run, Plan]]:
    """The runs of a judging, newest first: one for each environment it was planned in."""
    runs = store.catalog.runs(suite=f"{JUDGE}{judge.name}", judging=True)
    return [(run, store.plan(run.plan_blob)) for run in runs if run.judging == judging and run.plan_blob]


def _finished_run(store: Store, judge: Judge, judging: Judging) -> tuple[Run, Plan] | None:
    """A run of the judging that has all its rows, closed or not."""
    for run, made in _runs_of(store, judge, judging):
        if store.responses.is_closed(run.run_id) or len(store.queue.results(run.run_id)) == made.n_batches:
            return run, made
    return None


def _judged(
    store: Store, judge: Judge, reference: str, run: Run, benchmark: BenchmarkVersion, answers: Sequence[Answer]
) -> list[Score]:
    if not any(question_ids(response) for _, response in answers):
        return list(judged_scores(benchmark, answers, question_benchmark(judge), {}, {}))
    judging = Judging(run_id=run.run_id, benchmark_id=benchmark.benchmark_id, grader=reference)
    found = _finished_run(store, judge, judging) or next(iter(_runs_of(store, judge, judging)), None)
    if found is None:
        raise UserError(
            f"run {run.run_id[:12]}, {benchmark.name!r}: nothing was planned for grader {reference!r}; plan it first "
            "(graders judge does)"
        )
    judges_run, made = found
    close_run(store, judges_run, made)
    asked = store.catalog.benchmark_by_id(judges_run.request.benchmark_ids[0])
    verdicts = {row.item_id: row for row in store.responses.rows(judges_run.run_id, asked.benchmark_id)}
    return list(judged_scores(benchmark, answers, asked, verdicts, {}))
