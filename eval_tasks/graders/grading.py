"""A closed run's stored outputs under another grader: planned as a run of the judge, and finished as a score set.

    planned = plan_grading(store, run_id=..., benchmark_name=..., grader="helpful", ...)   # None: nothing to run
    ... run_shard for each of planned.shards, wherever, as often as it takes ...
    reference = finish_grading(store, run_id=..., benchmark_name=..., grader="helpful")

The evaluated model never runs. The same judging is the same run and the same score set, so that both may be called
again at any time. A scorer as a grader needs no run. Scores of judges and of other benchmarks' scorers stand beside the
run's own and never become its numbers by themselves.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from eval_tasks.checkpoint import fetch
from eval_tasks.errors import UserError, did_you_mean
from eval_tasks.grade import close_run
from eval_tasks.graders.questions import question_benchmark, question_ids, questions, save_questions
from eval_tasks.graders.rules import check_rule, rule_grader, rule_scores
from eval_tasks.graders.verdicts import judged_scores
from eval_tasks.plan import plan, plan_endpoint
from eval_tasks.records import BenchmarkVersion, EndpointConfig, Judge, Judging, Plan, Run, Score, Suite, SuiteEntry
from eval_tasks.records.grader import JUDGE, RULE
from eval_tasks.scoring import metric_of, scorer_digest, scorer_names
from eval_tasks.scoring.run_rows import Answer, planned_items, stored_answers
from eval_tasks.settings import Config, EnvironmentSpec, Limits
from eval_tasks.store import Grader, Store

_log = logging.getLogger(__name__)


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
    if name is not None:
        found = config.environment(name)
        _check_environment(grader, found)
        return found
    asks = grader.judge is not None and grader.judge.kind == "endpoint"
    live = sorted((e for e in config.environments if e.live), key=lambda e: e.gpus if asks else 0)
    fits = next((e for e in live if not _misfit(grader, e)), None)
    if fits is None:
        told = "; ".join(f"{e.name}: {_misfit(grader, e)}" for e in live) or "none is live"
        raise UserError(f"no environment fits grader {grader.grader!r}: {told}")
    return fits


def _misfit(grader: Grader, environment: EnvironmentSpec) -> str:
    """Why the judge cannot run there, '' when it can."""
    engine = grader.judge.engine_config if grader.judge else None
    if environment.engine == "mock":
        return "its engine is a mock, and verdicts are not made up"
    if engine is None:
        return ""
    for name in ("device", "tensor_parallel"):
        wanted, there = getattr(engine, name), getattr(environment, name)
        if wanted != there:
            return f"{name} is {there!r} there, and the judge's {wanted!r}"
    return ""


def _check_environment(grader: Grader, environment: EnvironmentSpec) -> None:
    if misfit := _misfit(grader, environment):
        raise UserError(f"grader {grader.grader!r} cannot run in environment {environment.name!r}: {misfit}")


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
    _check_environment(found, environment)
    judging = Judging(run_id=run.run_id, benchmark_id=benchmark.benchmark_id, grader=found.grader)
    if _finished_run(store, found, judging) is not None:
        return None
    shots = store.blobs.get_items(benchmark.few_shot_blob) if benchmark.few_shot_blob else []
    items = questions(benchmark, shots, judge, list(answers_of(store, run, benchmark)))
    if not items:
        return None
    about = f"{run.run_id} {benchmark.benchmark_id}"
    asked = save_questions(store, question_benchmark(judge, items, about=about), items, now)
    entry = SuiteEntry(benchmark=asked.name, version=asked.version, benchmark_id=asked.benchmark_id)
    suite = Suite(name=f"{JUDGE}{judge.name}", version=asked.version, tier=run.tier, entries=(entry,))
    if isinstance(judge.engine, EndpointConfig):
        return plan_endpoint(
            store, suite=suite, environment=environment.name, engine=judge.engine, judging=judging, now=now
        )
    checkpoint = store.catalog.checkpoint(judge.checkpoint_id)
    checkpoint = replace(checkpoint, uri=judge.checkpoint_uri, training_run=suite.name, step=0)
    return plan(
        store,
        checkpoint=checkpoint,
        checkpoint_dir=fetch(checkpoint, cache_dir),
        suite=suite,
        environment=environment,
        limits=limits,
        engine=judge.engine,
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
    rows: Iterable[Score]
    if found.judge is None:
        scorer = found.name.removeprefix(RULE)
        check_rule(benchmark, scorer, store.blobs.iter_items(benchmark.items_blob, _planned(store, run, benchmark)))
        rows = rule_scores(benchmark, scorer, answers_of(store, run, benchmark))
    else:
        rows = _judged(store, found, found.judge, run, benchmark, list(answers_of(store, run, benchmark)))
    store.scores.write(run.run_id, benchmark.benchmark_id, found.grader, rows)
    return found.grader


def _planned(store: Store, run: Run, benchmark: BenchmarkVersion) -> set[str]:
    return planned_items(store, store.plan(run.plan_blob or ""))[benchmark.benchmark_id]


def answers_of(store: Store, run: Run, benchmark: BenchmarkVersion) -> Iterator[Answer]:
    """Each planned item of a closed run's benchmark with its response, in item_id order."""
    return stored_answers(store, run.run_id, benchmark, _planned(store, run, benchmark))


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


def unfit(judge: Judge, benchmark: BenchmarkVersion) -> str:
    """Why a judge cannot judge a benchmark's outputs, '' when it can."""
    info = metric_of(benchmark, benchmark.primary_metric)
    if benchmark.kind != "generation":
        return (
            f"judge {judge.name!r} judges texts, and benchmark {benchmark.name!r} of kind {benchmark.kind!r} has none"
        )
    if (info.unit, info.higher_is_better) != ("fraction", True):
        return (
            f"judge {judge.name!r} gives values from 0 to 1, and {benchmark.primary_metric!r} of {benchmark.name!r} is "
            f"in {info.unit}"
        )
    return ""


def _check_fits(judge: Judge, benchmark: BenchmarkVersion) -> None:
    if why := unfit(judge, benchmark):
        raise UserError(why)
    asked = question_benchmark(judge)
    if scorer_digest(asked.scorer) != judge.verdict_digest:
        raise UserError(
            f"judge {judge.name!r} version {judge.version!r} was registered by a release that reads verdicts "
            "otherwise; register it under a new version, or use that release"
        )


def judging_runs(store: Store, grader: Grader) -> list[Run]:
    """The runs in which this version of a judge judged outputs, newest first."""
    runs = store.catalog.runs(suite=f"{JUDGE}{grader.judge.name}", judging=True) if grader.judge else []
    return [run for run in runs if run.judging is not None and run.judging.grader == grader.grader]


def waits_for_questions(store: Store, run: Run, benchmark: BenchmarkVersion, grader: Grader) -> bool:
    """Whether a judge has questions about a run's outputs that are not all answered."""
    judging = Judging(run_id=run.run_id, benchmark_id=benchmark.benchmark_id, grader=grader.grader)
    return grader.judge is not None and _finished_run(store, grader, judging) is None


def _runs_of(store: Store, grader: Grader, judging: Judging) -> list[tuple[Run, Plan]]:
    """The runs of a judging, newest first: one for each environment it was planned in."""
    runs = judging_runs(store, grader)
    return [(run, store.plan(run.plan_blob)) for run in runs if run.judging == judging and run.plan_blob]


def _finished_run(store: Store, grader: Grader, judging: Judging) -> tuple[Run, Plan] | None:
    """A run of the judging that has all its rows, closed or not."""
    for run, made in _runs_of(store, grader, judging):
        if store.responses.is_closed(run.run_id) or len(store.queue.results(run.run_id)) == made.n_batches:
            return run, made
    return None


def _judged(
    store: Store, grader: Grader, judge: Judge, run: Run, benchmark: BenchmarkVersion, answers: Sequence[Answer]
) -> list[Score]:
    if not any(question_ids(response) for _, response in answers):
        return list(judged_scores(benchmark, answers, question_benchmark(judge), {}, {}))
    judging = Judging(run_id=run.run_id, benchmark_id=benchmark.benchmark_id, grader=grader.grader)
    found = _finished_run(store, grader, judging) or next(iter(_runs_of(store, grader, judging)), None)
    if found is None:
        raise UserError(
            f"run {run.run_id[:12]}, {benchmark.name!r}: nothing was planned for grader {grader.grader!r}; plan it "
            "first (graders judge does)"
        )
    judges_run, made = found
    close_run(store, judges_run, made)
    asked = store.catalog.benchmark_by_id(judges_run.request.benchmark_ids[0])
    verdicts = {row.item_id: row for row in store.responses.rows(judges_run.run_id, asked.benchmark_id)}
    notes = _served(store, judges_run.run_id, verdicts) if judge.kind == "endpoint" else {}
    return list(judged_scores(benchmark, answers, asked, verdicts, notes))


def _served(store: Store, run_id: str, question_ids: Iterable[str]) -> dict[str, dict[str, object]]:
    """What an endpoint said of itself with each reply: the model that it served, its fingerprint, the reply's id."""
    notes = {}
    for question_id in question_ids:
        body = (store.replies.kept(run_id, question_id) or {}).get("body", {})
        names = {"served_model": "model", "fingerprint": "system_fingerprint", "reply_id": "id"}
        notes[question_id] = {name: body.get(field) for name, field in names.items()}
    served = Counter((note["served_model"], note["fingerprint"]) for note in notes.values())
    if len(served) > 1:
        told = ", ".join(
            f"{model} {fingerprint or ''} ({n})".replace("  ", " ") for (model, fingerprint), n in served.items()
        )
        _log.warning("run %s: the endpoint served several models: %s", run_id, told)
    return notes
