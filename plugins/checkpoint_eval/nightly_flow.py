"""The nightly determinism check as an Airflow DAG. What a task does is in `nights`.

configured -> plan -> runs -> logprob pods | generation pods | sentinel pods -> judge (one per environment)
-> verdict | ask_about_blocks
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.sdk import DAG, TaskGroup, chain, get_current_context, task

from checkpoint_eval import flow, nights, steps
from checkpoint_eval.pods import shard_pods


@task.short_circuit(task_id="configured")
def configured() -> bool:
    """Is there a fixed suite, and a live environment? Otherwise nothing is run."""
    with flow.airflow_errors():
        return nights.is_configured()


@flow.step()
def plan() -> list[nights.NightOf]:
    """The fixed suite on the fixed checkpoint for every live environment, once as ever and once perturbed."""
    context = get_current_context()
    instance = context["ti"]
    night = context["dag_run"].run_id.removeprefix("scheduled__")
    return nights.plan(night, last_try=instance.try_number > instance.max_tries)


@flow.step()
def runs(planned: list[nights.NightOf]) -> list[steps.PlannedRun]:
    """Both runs of each environment that could be planned."""
    return nights.runs(planned)


@flow.step()
def sentinel_pods(planned: list[nights.NightOf]) -> list[dict[str, Any]]:
    """One pod for each environment, that tries the engine's promises on about 200 sentinels."""
    return nights.sentinel_pods(planned)


@flow.step(trigger_rule="all_done", map_index_template="{{ task.op_kwargs['night']['environment'] }}")
def judge(night: nights.NightOf) -> nights.Judged:
    """Bit for bit against the perturbed plan and the baseline; a difference opens a block, with one alert."""
    return nights.judge(night)


# The block's own alert has told what this says again.
@flow.step(
    trigger_rule="all_done",
    map_index_template="{{ task.op_kwargs['judged']['environment'] }}",
    retries=0,
    on_failure_callback=None,
)
def verdict(judged: nights.Judged) -> str:
    """Fails where a night was not good, so that it is seen where people look."""
    return nights.verdict(judged)


@flow.step(trigger_rule="all_done", task_id="blocks")
def blocks_of_night(judged: list[nights.Judged]) -> list[dict[str, Any]]:
    """The blocks that this night has opened, for a person to explain."""
    return nights.to_explain(block_id for one in judged for block_id in one["block_ids"])


def nightly_dag(*, doc_md: str | None) -> DAG:
    """The DAG `determinism_nightly`. It passes no gate: what is blocked is looked at all the more."""
    with DAG(
        dag_id="determinism_nightly",
        description="The fixed suite in every live environment, bit for bit against its baseline.",
        schedule="15 2 * * *",
        start_date=datetime(2026, 1, 1, tzinfo=UTC),
        catchup=False,
        max_active_runs=1,
        tags=["checkpoint-eval", "determinism"],
        doc_md=doc_md,
        default_args=flow.DEFAULT_ARGS,
    ) as dag:
        planned = plan()
        chain(configured(), planned)
        both = runs(planned)
        groups = [flow.pod_group(both, group, "determinism") for group in flow.POOLS]
        with TaskGroup(group_id="sentinels", tooltip="sentinel pods, one per environment") as sentinels:
            shard_pods(
                task_id="try_sentinels",
                pool=flow.POOLS["logprob"],
                map_index_template="{{ task.labels['checkpoint-eval/environment'] }}",
            ).expand_kwargs(sentinel_pods(planned))
        judged = judge.expand(night=planned)
        chain([*groups, sentinels], judged)
        verdict.expand(judged=judged)
        flow.ask_about_blocks(blocks_of_night(judged))
    return dag
