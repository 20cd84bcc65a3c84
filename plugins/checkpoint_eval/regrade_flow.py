"""The regrading of one stored run as an Airflow DAG, which backfills run over a window of runs. Work is in `regrading`.

choose -> gate -> plan -> logprob pods | generation pods -> regrade
-> aggregate -> join_contamination -> guard -> report
"""

from __future__ import annotations

import logging
from typing import Any

from airflow.sdk import DAG, Param, PokeReturnValue, chain, get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException

from checkpoint_eval import flow, regrading, steps
from checkpoint_eval.timetable import StoredRunsTimetable

_log = logging.getLogger(__name__)


def regrade_params() -> dict[str, Param]:
    """The form of a backfill, or of a run that a person starts."""

    def optional(title: str, description: str, **more: Any) -> Param:
        return Param(None, type=["string", "null"], title=title, description=description, **more)

    return {
        "grader": Param(
            "own",
            type="string",
            minLength=1,
            title="Grader",
            description="A judge's NAME or NAME@VERSION, a scorer's name, or `own`: each benchmark's own scorer, as "
            "this release has it.",
        ),
        "benchmark": optional(
            "Benchmark", "Only this one. A scorer that is not its own gives a second opinion. Empty: all that fit."
        ),
        "training_run": optional("Training run", "Only runs of this training run."),
        "suite": optional("Suite", "Only runs of this suite, NAME or NAME@VERSION."),
        "tier": Param(
            None,
            type=["string", "null"],
            enum=[None, "health", "selection", "release"],
            title="Tier",
            description="Only runs of this tier.",
        ),
        "against": optional("Against", "Whose scores are the old ones. Empty: the version before, else the scorer."),
        "environment": optional("Environment", "Where a judge runs. Empty: the first live one that its engine fits."),
        "run": optional("Run", "Without a backfill: the run, by its id or the beginning of it."),
    }


@flow.step()
def choose() -> str:
    """The stored run of this partition; skipped when the form leaves it out or nothing of it fits the grader."""
    context = get_current_context()
    run_id = regrading.choose(flow.params_now(), context["dag_run"].partition_key)
    if not run_id:
        raise AirflowSkipException("the form leaves this run out, or no benchmark of it fits the grader")
    return run_id


@task.sensor(task_id="gate", poke_interval=30, timeout=14 * 24 * 3600, mode="reschedule", retries=5)
def gate(chosen: str) -> PokeReturnValue:
    """Hold while a block stands on the judge's environment; a scorer runs no model and waits for nothing."""
    with flow.airflow_errors():
        is_open, reason = regrading.gate(flow.params_now(), chosen)
    _log.info("%s", reason)
    return PokeReturnValue(is_done=is_open, xcom_value=reason)


@flow.step()
def plan(chosen: str) -> list[steps.PlannedRun]:
    """A judge's questions about the stored outputs, in shards; empty for a scorer, and when all was judged before."""
    return regrading.plan(flow.params_now(), chosen)


@flow.step(trigger_rule="none_failed_min_one_success")
def regrade(chosen: str) -> list[regrading.Regraded]:
    """Close the judge's runs and write its score sets beside the earlier ones; scorers score here."""
    return regrading.regrade(flow.params_now(), chosen)


@flow.step()
def aggregate(regraded: list[regrading.Regraded]) -> list[str]:
    """Measure anew the runs whose own scorer has a newer version; none after a second opinion."""
    return steps.aggregate(regrading.own_runs(regraded))


@flow.step()
def report(regraded: list[regrading.Regraded]) -> str:
    """What moved: old and new score per category, paired difference with interval, flipped items. The HTML's URI."""
    return regrading.report(flow.params_now(), regraded)


def regrade_dag(*, doc_md: str | None) -> DAG:
    """The DAG `regrade`: never scheduled; a backfill makes one run of it for each stored run."""
    with DAG(
        dag_id="regrade",
        description="Score stored outputs by another grader, and report what moved. Started as a backfill.",
        schedule=StoredRunsTimetable(),
        catchup=False,
        max_active_runs=4,
        tags=["checkpoint-eval", "regrade"],
        doc_md=doc_md,
        params=regrade_params(),
        default_args=flow.DEFAULT_ARGS,
    ) as dag:
        chosen = choose()
        planned = plan(chosen)
        groups = [flow.pod_group(planned, group, "regrade") for group in flow.POOLS]
        regraded = regrade(chosen)
        chain(gate(chosen), planned, groups, regraded)
        chain(flow.guard(flow.join_contamination(aggregate(regraded))), report(regraded))
    return dag
