"""The contamination scan as an Airflow DAG. What a task does is in `scanning`.

plan -> pods -> scan_shard (mapped pods) -> close -> join_contamination
"""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG, Param, chain

from checkpoint_eval import flow, scanning, steps
from checkpoint_eval.pods import shard_pods


@flow.step()
def plan() -> list[scanning.PlannedScan]:
    """A scan of each corpus that a benchmark was not checked with; none when all was checked."""
    return scanning.plan(flow.params_now())


@flow.step()
def pods(planned: list[scanning.PlannedScan]) -> list[dict[str, object]]:
    """The pods that still have work: one per shard that is not done."""
    return scanning.pods(planned)


@flow.step(trigger_rule="none_failed")
def close(planned: list[scanning.PlannedScan]) -> list[str]:
    """Record statuses, rates and problems of every benchmark that was looked for; missing shards are an error."""
    return scanning.close(planned)


@flow.step()
def join_contamination(benchmark_ids: list[str]) -> list[str]:
    """Give the numbers of stored runs their companions anew, where these checks speak of them."""
    return steps.join_contamination(scanning.affected_runs(benchmark_ids))


def _names(title: str, description: str) -> Param:
    return Param([], type="array", items={"type": "string"}, title=title, description=description)


def contamination_dag(*, doc_md: str | None) -> DAG:
    """The DAG `contamination_scan`: looks every hour whether anything is to be checked; most often nothing is."""
    with DAG(
        dag_id="contamination_scan",
        description="Hold benchmarks against training corpora that they were not checked with.",
        schedule="@hourly",
        start_date=datetime(2026, 1, 1, tzinfo=UTC),
        catchup=False,
        max_active_runs=1,
        tags=["checkpoint-eval", "contamination"],
        doc_md=doc_md,
        params={
            "corpora": _names("Corpora", "Only these, one name a line. Empty: every registered one."),
            "benchmarks": _names("Benchmarks", "Only these, NAME or NAME@VERSION. Empty: every registered one."),
        },
        default_args=flow.DEFAULT_ARGS,
    ) as dag:
        planned = plan()
        scans = shard_pods(task_id="scan_shard", pool=flow.POOLS["logprob"]).expand_kwargs(pods(planned))
        closed = close(planned)
        chain(scans, closed)
        join_contamination(closed)
    return dag
