"""What each task of the evaluation flow does: ids and URIs in, ids and URIs out, one call into the library each.

Knows the library and the shape of the flow's parameters, not Airflow: everything here runs in a plain test. Imports of
the library are inside the functions, since DAG files are parsed with this module loaded.
"""

from __future__ import annotations

import logging
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from checkpoint_eval import metrics
from checkpoint_eval.baselines import BASELINE_POLICIES, baseline_arm, stored_baseline

if TYPE_CHECKING:
    from eval_tasks.records import Plan, Run
    from eval_tasks.settings import Config, EnvironmentSpec, Limits
    from eval_tasks.store import Store

_log = logging.getLogger(__name__)


class Arm(TypedDict):
    """One checkpoint of an evaluation. `role`: candidate, seed (same recipe, other training seed) or baseline.

    `awaited`: the DAG run of this tier that evaluates it, so that this one only waits for it; empty for none.
    """

    role: str
    checkpoint_id: str
    checkpoint_uri: str
    training_run: str
    step: int
    awaited: str


class PlannedRun(TypedDict):
    """One arm with its plan. `forecast`: what it will cost at most, in words; empty for one that is awaited or done."""

    role: str
    run_id: str
    plan_uri: str
    awaited: str
    forecast: NotRequired[str]


def now() -> str:
    """The time that is recorded, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def open_catalog() -> Store:
    """The store and catalog of this process's settings."""
    from eval_tasks.settings import Settings
    from eval_tasks.store import open_store

    return open_store(Settings())


def cache_dir() -> Path:
    """Where remote checkpoints are kept by digest (CHECKPOINT_EVAL_CACHE, or `cache` in the home folder).

    Local folders are read in place.
    """
    from eval_tasks.settings import Settings

    return Path(os.environ.get("CHECKPOINT_EVAL_CACHE") or Settings().home / "cache")


def gate(params: dict[str, Any]) -> tuple[bool, str]:
    """Whether evaluation may start in the wanted environment, and why."""
    from eval_tasks.gate import gate as library_gate
    from eval_tasks.settings import Settings, load_config

    spec = load_config(Settings().config).environment(params.get("environment") or None)
    result = library_gate(open_catalog(), environment=spec.name)
    return result.open, result.reason


def resolve(params: dict[str, Any], tier: str) -> list[Arm]:
    """Validate and hash the candidate, further seeds of its recipe, and the baseline unless it is named by a run."""
    from eval_tasks.digests import digest_parts, short_id
    from eval_tasks.errors import CheckpointError
    from eval_tasks.records import Alert
    from eval_tasks.resolve import resolve as library_resolve

    store = open_catalog()
    _check_question(store, params)
    wanted = [("candidate", params["checkpoint_uri"], params["training_run"], params.get("step"), "")]
    wanted += [
        ("seed", uri, f"{params['training_run']}-seed-{n}", None, "")
        for n, uri in enumerate(params.get("seeds") or (), 1)
    ]
    wanted += baseline_arm(store, params, tier)
    arms: list[Arm] = []
    for role, uri, training_run, step, awaited in wanted:
        try:
            checkpoint = library_resolve(
                store,
                checkpoint_uri=uri,
                training_run=training_run,
                step=step,
                corpora=tuple(params.get("corpora") or ()),
            )
        except CheckpointError as error:
            if role == "baseline" and params.get("baseline") in BASELINE_POLICIES:
                # Trainers delete old checkpoints. What was evaluated of it is still there: see `compare`.
                _log.warning("baseline %s cannot be read any more (%s): its rows are used if there are any", uri, error)
                continue
            if role == "candidate":
                _finish_landing(store, params)
            store.catalog.raise_alert(
                Alert(
                    alert_id=short_id(digest_parts(["corrupt_checkpoint", uri, error.reason])),
                    kind="corrupt_checkpoint",
                    title=f"checkpoint {uri} cannot be evaluated: {error.reason}",
                    body=str(error),
                    training_run=training_run,
                    created_at=now(),
                )
            )
            raise
        arms.append(
            Arm(
                role=role,
                checkpoint_id=checkpoint.checkpoint_id,
                checkpoint_uri=uri,
                training_run=training_run,
                step=checkpoint.step,
                awaited=awaited,
            )
        )
    return arms


def _check_question(store: Store, params: dict[str, Any]) -> None:
    """Raise UserError now for a suite, rule or baseline run that is not there, not after the pods have run."""
    name, _, version = params["suite"].partition("@")
    store.catalog.suite(name, version or None)
    if params.get("rule"):
        store.catalog.rule(params["rule"])
    baseline = params.get("baseline") or "none"
    if "/" not in baseline and baseline not in BASELINE_POLICIES:
        store.catalog.run(baseline)


def plan(params: dict[str, Any], arms: list[Arm]) -> list[PlannedRun]:
    """Plan the suite on every arm. The same request is the same run: an arm evaluated before has nothing left to do."""
    from eval_tasks.errors import CheckpointError, CheckpointGoneError
    from eval_tasks.plan import plan_uri
    from eval_tasks.settings import Settings, load_config

    store = open_catalog()
    config = load_config(Settings().config)
    # One task maps the pods of all arms: together they stay below what Airflow maps.
    n_own = sum(not arm["awaited"] for arm in arms)
    max_shards = max(2, config.limits.max_shards // max(1, n_own))
    limits = config.limits.model_copy(update={"max_shards": min(max_shards, config.limits.max_shards)})
    planned: list[PlannedRun] = []
    for arm in arms:
        try:
            made = _plan_arm(store, params, arm, config.environment(params.get("environment") or None), limits)
        except (CheckpointError, CheckpointGoneError) as error:
            if arm["role"] == "baseline" and params.get("baseline") in BASELINE_POLICIES:
                _log.warning("baseline %s cannot be planned (%s): going on without it", arm["checkpoint_uri"], error)
                continue
            raise
        expected = "" if arm["awaited"] else _reserve(store, made, config)
        planned.append(
            PlannedRun(
                role=arm["role"],
                run_id=made.run_id,
                plan_uri=plan_uri(store, made),
                awaited=arm["awaited"],
                forecast=expected,
            )
        )
    return planned


def _reserve(store: Store, made: Plan, config: Config) -> str:
    """Put a plan's forecast into the ledger; the forecast in words. Raises BudgetError when a budget is spent."""
    from eval_tasks.budgets import reserve
    from eval_tasks.report.numbers import cost_text

    if store.responses.is_closed(made.run_id):
        return ""
    entry = reserve(store, made, config.environment(made.environment), config, now())
    if entry is None:
        return ""
    words = cost_text(entry.forecast)
    _log.info("run %s: forecast, at most: %s", made.run_id, words)
    return words


def _plan_arm(store: Store, params: dict[str, Any], arm: Arm, spec: EnvironmentSpec, limits: Limits) -> Plan:
    from dataclasses import replace

    from eval_tasks.checkpoint import fetch
    from eval_tasks.plan import plan as library_plan

    checkpoint = replace(
        store.catalog.checkpoint(arm["checkpoint_id"]),
        uri=arm["checkpoint_uri"],
        training_run=arm["training_run"],
        step=arm["step"],
    )
    return library_plan(
        store,
        checkpoint=checkpoint,
        checkpoint_dir=fetch(checkpoint, cache_dir()),
        suite=params["suite"],
        environment=spec,
        limits=limits,
        engine=spec.engine_config(),
        seed=int(params.get("seed") or 0),
        now=now(),
    )


def power(params: dict[str, Any]) -> str:
    """What the suite can find and what it takes, as Markdown, for the person who approves."""
    from eval_tasks.report.resolution import markdown
    from eval_tasks.resolution import Asked, suite_resolution

    name, _, version = params["suite"].partition("@")
    store = open_catalog()
    return markdown(suite_resolution(store, [store.catalog.suite(name, version or None)], Asked(target=0.01)))


def own(planned: list[PlannedRun]) -> list[PlannedRun]:
    """The runs that this DAG run computes itself."""
    return [run for run in planned if not run["awaited"]]


def pods(planned: list[PlannedRun], group: str, tier: str) -> list[dict[str, Any]]:
    """Arguments of one pod per shard of `group`, over all runs that are not closed yet."""
    from checkpoint_eval.placement import blocked_nodes
    from checkpoint_eval.pods import shard_pod_kwargs
    from eval_tasks.settings import Settings, load_config

    store = open_catalog()
    settings = Settings()
    config = load_config(settings.config)
    suspects = blocked_nodes(store)
    wanted: list[dict[str, Any]] = []
    # Two arms of one content are one run.
    for run in {run["run_id"]: run for run in own(planned)}.values():
        if store.responses.is_closed(run["run_id"]):
            continue
        plan = store.plan(run["plan_uri"])
        shards = [shard.shard for shard in plan.shards if shard.group == group]
        wanted += shard_pod_kwargs(
            plan_uri=run["plan_uri"],
            run_id=run["run_id"],
            shards=shards,
            group=group,
            tier=tier,
            environment=config.environment(plan.environment),
            limits=config.limits,
            settings=settings,
            suspects=suspects,
        )
    return wanted


def grade(planned: list[PlannedRun]) -> list[str]:
    """Close and score each run, hold what was computed twice against it, and note what it has cost; the run ids."""
    from eval_tasks.budgets import account
    from eval_tasks.determinism import check_again
    from eval_tasks.grade import grade as library_grade
    from eval_tasks.report.numbers import cost_text
    from eval_tasks.settings import Settings, load_config

    store = open_catalog()
    config = load_config(Settings().config)
    run_ids = [library_grade(store, run_id=run["run_id"]).run_id for run in own(planned)]
    for run_id in run_ids:
        twice = check_again(store, run_id, now())
        if twice is not None:
            counts = (run_id, twice.n_items, twice.n_elsewhere, twice.n_differing)
            _log.info("run %s: %d items computed twice, %d of them in another pod, %d differ", *counts)
        before = store.catalog.cost(run_id)
        entry = account(store, run_id, config)
        if entry is not None and entry.actual is not None:
            if before is not None and before.actual is None:  # a task that is tried again tells nothing twice
                metrics.told_cost(entry)
            _log.info("run %s: cost %s", run_id, cost_text(entry.actual))
    return run_ids


def aggregate(run_ids: list[str]) -> list[str]:
    """Measurements with error bars for each run; the run ids."""
    from eval_tasks.aggregate import aggregate as library_aggregate

    store = open_catalog()
    for run_id in run_ids:
        library_aggregate(store, run_id)
    return run_ids


def join_contamination(run_ids: list[str]) -> list[str]:
    """Decontaminated companions for each run; the run ids."""
    from eval_tasks.join_contamination import join_contamination as library_join

    store = open_catalog()
    for run_id in run_ids:
        report = library_join(store, run_id=run_id)
        _log.info("run %s: checked %s, never checked %s", run_id, list(report.checked), list(report.never_checked))
    return run_ids


def guard(run_ids: list[str]) -> list[str]:
    """Check each run's rows and numbers and quarantine what is implausible; the run ids."""
    from eval_tasks.guard import guard as library_guard

    store = open_catalog()
    for run_id in run_ids:
        report = library_guard(store, run_id=run_id, now=now())
        for check, outcome in report.checks.items():
            _log.info("run %s: %s: %s", run_id, check, outcome)
    return run_ids


def health(planned: list[PlannedRun]) -> list[str]:
    """Look at the candidate's training run; what struck, in sentences."""
    from eval_tasks.health import health as library_health
    from eval_tasks.report.health_sentences import false_alarms, finding_sentence

    store = open_catalog()
    candidate = next(run["run_id"] for run in planned if run["role"] == "candidate")
    look = library_health(store, run_id=candidate, now=now())
    for finding in look.findings:
        _log.info("run %s: %s", candidate, finding_sentence(finding))
    _log.info("%s", false_alarms(look))
    return [finding_sentence(finding) for finding in look.alarms]


def select(planned: list[PlannedRun]) -> str:
    """Choose among the candidate and the earlier checkpoints of its training run on this suite; the selection's id."""
    from eval_tasks.report.selections import sentences
    from eval_tasks.select import runs_of
    from eval_tasks.select import select as library_select

    store = open_catalog()
    run = store.catalog.run(next(run["run_id"] for run in planned if run["role"] == "candidate"))
    suite = f"{run.request.suite}@{run.request.suite_version}"
    earlier = [r for r in runs_of(store, run.training_run, suite, up_to_step=run.step) if r != run.run_id]
    if not earlier:
        _log.info("run %s: no earlier checkpoint was evaluated on %s: nothing to select among", run.run_id, suite)
        return ""
    selection = library_select(store, [*earlier, run.run_id], split=True)
    for found in selection.benchmarks:
        for sentence in sentences(found):
            _log.info("%s", sentence)
    return selection.selection_id


def compare(params: dict[str, Any], planned: list[PlannedRun], *, last_try: bool = True) -> str | None:
    """Compare the candidate with its baseline; the comparison id, or None without a baseline.

    A baseline that another DAG run still evaluates is an InfraError, so that the task is tried again; on the `last_try`
    (it has ended without a result, say) the candidate goes on without: no checkpoint holds up another for good.
    """
    from eval_tasks.compare import compare as library_compare
    from eval_tasks.compare import keep_diagnoses
    from eval_tasks.errors import InfraError

    store = open_catalog()
    candidate = store.catalog.run(next(run["run_id"] for run in planned if run["role"] == "candidate"))
    arm = next((run for run in planned if run["role"] == "baseline"), None)
    policy = params.get("baseline") or "none"
    if arm is None and policy in BASELINE_POLICIES:
        baseline = stored_baseline(store, params, candidate)
    else:
        baseline = store.catalog.run(arm["run_id"] if arm else policy)
    if baseline is None:
        _log.info("run %s: no baseline (policy %r), nothing to compare", candidate.run_id, policy)
        return None
    if arm is not None and arm["awaited"] and store.catalog.guard(baseline.run_id) is None:
        waiting = f"baseline run {baseline.run_id} (step {baseline.step}) is {baseline.status}, not evaluated yet"
        if not last_try:
            raise InfraError(waiting)
        _log.warning("%s: going on without a comparison", waiting)
        return None
    rule = store.catalog.rule(params["rule"]) if params.get("rule") else None
    study = _seed_study(store, candidate, planned)
    apart = candidate.training_run != baseline.training_run and candidate.training_run and baseline.training_run
    comparison = library_compare(
        store, candidate.run_id, baseline.run_id, rule=rule, seed_study=study if apart and study else None
    )
    keep_diagnoses(store, comparison)
    _log.info("%s: %s", comparison.verdict or "no verdict", comparison.reason)
    return comparison.comparison_id


def _seed_study(store: Store, candidate: Run, planned: list[PlannedRun]) -> str:
    """Record what the candidate's further seeds say of its recipe; the study's name@version, '' for too few of them."""
    from eval_tasks.compare.studies import record_study
    from eval_tasks.errors import UserError
    from eval_tasks.records.seed_study import FEWEST_RUNS

    seeds = [candidate.run_id, *(run["run_id"] for run in planned if run["role"] == "seed")]
    if len(seeds) < FEWEST_RUNS:
        return ""
    name = re.sub(r"[^a-z0-9._-]+", "-", f"{candidate.training_run}-seeds".lower()).strip("._-")
    try:
        recorded = record_study(store, name, seeds, now=now())
    except UserError as error:
        _log.warning("the further seeds are no seed study: %s", error)
        return ""
    _log.info("seed study %s from %s runs", recorded.study.reference, len(seeds))
    return recorded.study.reference


def publish(params: dict[str, Any], planned: list[PlannedRun], comparison_id: str | None) -> dict[str, str]:
    """Write each run's report; the candidate's shows the comparison. Returns report URIs by role."""
    from eval_tasks.publish import publish as library_publish

    store = open_catalog()
    uris: dict[str, str] = {}
    for number, run in enumerate(own(planned)):
        published = library_publish(
            store,
            run_id=run["run_id"],
            comparison_id=comparison_id if run["role"] == "candidate" else None,
            now=now(),
            notes=str(params.get("notes") or ""),
        )
        _log.info("%s", published.terminal)
        uris[run["role"] if run["role"] != "seed" else f"seed-{number}"] = published.html_uri
    _finish_landing(store, params, has_report=True)
    for run_id in dict.fromkeys(run["run_id"] for run in planned):
        for alert in store.catalog.alerts(run_id=run_id):
            _log.warning("ALERT %s\n%s", alert.title, alert.body)
    return uris


def _finish_landing(store: Store, params: dict[str, Any], *, has_report: bool = False) -> None:
    """Tell the ledger that this DAG run has ended, when it was started for a landing."""
    landing_id, tier = params.get("landing_id"), params.get("tier")
    if not landing_id or not tier:
        return
    from eval_tasks.checkpoint import dag_run_id
    from eval_tasks.errors import UserError

    try:
        row = store.catalog.landing(landing_id)
    except UserError as error:  # a person's own conf
        _log.warning("%s", error)
        return
    dag_run = dag_run_id(tier, row.landing)
    if has_report and dag_run not in row.finished:
        metrics.told_verdict(row, tier, datetime.now(UTC))
    store.catalog.finish_landing(landing_id, dag_run)
