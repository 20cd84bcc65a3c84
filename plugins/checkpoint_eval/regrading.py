"""What each task of the regrading flow does: one stored run, another grader, ids and URIs in and out.

As `steps`: knows the library and the flow's parameters, not Airflow; imports of the library are inside the functions.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, TypedDict

from checkpoint_eval.steps import PlannedRun, cache_dir, now, open_catalog

if TYPE_CHECKING:
    from eval_tasks.graders import Grading
    from eval_tasks.settings import EnvironmentSpec
    from eval_tasks.store import Store

_log = logging.getLogger(__name__)


class Regraded(TypedDict):
    """One benchmark's new score set. `own`: by the benchmark's own scorer, so that the run's numbers follow it."""

    run_id: str
    benchmark: str
    grader: str
    own: bool


def choose(params: dict[str, Any], partition_key: str | None) -> str:
    """The id of the run that is to be regraded, '' when the form's filters leave it out or nothing of it fits.

    Raises UserError when neither a backfill nor the form names a run, or for a grader that is not known.
    """
    from eval_tasks.errors import UserError
    from eval_tasks.graders import Window, runs_in

    wanted = partition_key or params.get("run")
    if not wanted:
        raise UserError("no run to regrade: create a backfill of this DAG over a window of time, or name a run")
    store = open_catalog()
    window = Window(
        run_ids=(wanted,),
        training_run=params.get("training_run") or "",
        suite=params.get("suite") or "",
        tier=params.get("tier") or "",
        benchmark=params.get("benchmark") or "",
    )
    for run in runs_in(store, window):
        if _gradings(store, params, run.run_id):
            return run.run_id
        _log.info("run %s: no benchmark for grader %s", run.run_id, params["grader"])
        return ""
    _log.info("run %s is not closed, or the filters leave it out: %s", wanted, params)
    return ""


def gate(params: dict[str, Any], run_id: str) -> tuple[bool, str]:
    """Whether a judge may run in its environment, and why. A scorer runs no model, so that it may always."""
    from eval_tasks.gate import gate as library_gate

    store = open_catalog()
    environments = {_environment(params, grading).name for grading in _to_judge(store, params, run_id)}
    for name in sorted(environments):
        result = library_gate(store, environment=name)
        if not result.open:
            return False, result.reason
    return True, f"open: {', '.join(sorted(environments)) or 'no model runs'}"


def plan(params: dict[str, Any], run_id: str) -> list[PlannedRun]:
    """Plan a judge's questions about the run's outputs, each benchmark as a run of the judge; none is left to a scorer.

    The same judging is the same run: what is judged already is not planned.
    """
    from eval_tasks.graders import plan_grading
    from eval_tasks.plan import plan_uri
    from eval_tasks.settings import Settings, load_config

    store = open_catalog()
    config = load_config(Settings().config)
    work = _to_judge(store, params, run_id)
    # One task maps the pods of all benchmarks: together they stay below what Airflow maps.
    most = max(1, config.limits.max_shards // max(1, len(work)))
    planned: list[PlannedRun] = []
    for grading in work:
        made = plan_grading(
            store,
            run_id=run_id,
            benchmark_name=grading.benchmark.name,
            grader=grading.asked,
            environment=_environment(params, grading),
            limits=config.limits.model_copy(update={"max_shards": most}),
            cache_dir=cache_dir(),
            now=now(),
        )
        if made is not None:
            _log.info("%s: %d questions in %d shards", grading.benchmark.name, made.n_items, len(made.shards))
            planned.append(PlannedRun(role="judge", run_id=made.run_id, plan_uri=plan_uri(store, made), awaited=""))
    return planned


def regrade(params: dict[str, Any], run_id: str) -> list[Regraded]:
    """Write the grader's score sets of the run's outputs beside the earlier ones; those that are there stay."""
    from eval_tasks.graders import finish_grading

    store = open_catalog()
    done = []
    for grading in _gradings(store, params, run_id):
        benchmark = grading.benchmark.name
        reference = finish_grading(store, run_id=run_id, benchmark_name=benchmark, grader=grading.asked)
        _log.info("run %s, %s: %s %s", run_id, benchmark, reference, "was there" if grading.done else "written")
        done.append(Regraded(run_id=run_id, benchmark=benchmark, grader=reference, own=grading.is_own))
    return done


def own_runs(regraded: list[Regraded]) -> list[str]:
    """The runs whose numbers are to follow new scores: none where a judge or another scorer gave a second opinion."""
    return sorted({done["run_id"] for done in regraded if done["own"]})


def report(params: dict[str, Any], regraded: list[Regraded]) -> str:
    """Keep and log what moved, per benchmark and category; the URI of the HTML report."""
    from eval_tasks.graders import keep_moves, moved_scores
    from eval_tasks.report import regrade_text

    store = open_catalog()
    run = store.catalog.run(regraded[0]["run_id"])
    benchmarks = {b.name: b for b in store.catalog.benchmarks_by_id(run.request.benchmark_ids)}
    moved = [
        moved_scores(store, run, benchmarks[done["benchmark"]], done["grader"], against=params.get("against") or None)
        for done in regraded
    ]
    _log.info("%s", regrade_text(moved))
    return keep_moves(store, run.run_id, moved, now())


def _gradings(store: Store, params: dict[str, Any], run_id: str) -> list[Grading]:
    from eval_tasks.graders import gradings

    return gradings(store, store.catalog.run(run_id), params["grader"], params.get("benchmark") or "")


def _to_judge(store: Store, params: dict[str, Any], run_id: str) -> list[Grading]:
    """What a model has still to judge."""
    return [g for g in _gradings(store, params, run_id) if g.grader.judge is not None and not g.done]


def _environment(params: dict[str, Any], grading: Grading) -> EnvironmentSpec:
    from eval_tasks.graders import environment_for
    from eval_tasks.settings import Settings, load_config

    return environment_for(load_config(Settings().config), grading.grader, params.get("environment") or None)
