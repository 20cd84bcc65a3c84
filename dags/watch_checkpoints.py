"""### watch_checkpoints: find checkpoints, start their evaluation, each exactly once

`await_checkpoints` waits in the triggerer until a checkpoint of a training run in the configuration file is complete
and quiet, and its marker is there if one is configured. `dispatch` starts `evaluate_health` for each and
`evaluate_selection` for every k-th and each promoted one (a file named `PROMOTE` in its folder, at any time), in
numeric step order. `record_dispatch` notes it in the ledger. The next run starts by itself; one that saw nothing for an
hour ends. Changes of the configuration count from the next look on, nothing has to be restarted.

**When it fails.** `await_checkpoints`: its log names the storage, database or configuration field that failed; it keeps
trying, mend the cause. `dispatch`: the DAG to be started is missing or cannot be read; mend it, everything is fired
again by the next run, and what was started already is skipped. `record_dispatch`: the catalog is away; the next run
repeats it. A checkpoint is not picked up: look for its alert, which names the file, what was found and the way out; an
incomplete one is taken as soon as its files are complete, a broken one when it is uploaded again.

**Whom it hurts.** No new checkpoint is evaluated while this stands still; none is lost, and training goes on. All that
landed meanwhile is started when it runs again.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, task

from checkpoint_eval.sensor import CheckpointSensor


@task(trigger_rule="none_failed")
def record_dispatch(due: list[dict[str, Any]]) -> list[str]:
    """Move the ledger, after firing and never before: what dies in between is fired again, and starts nothing twice."""
    from checkpoint_eval.ledger import record_dispatch as record
    from eval_tasks.settings import Settings
    from eval_tasks.store import open_store

    landing_ids = sorted({dispatch["conf"]["landing_id"] for dispatch in due})
    with open_store(Settings()) as store:
        record(store, landing_ids, datetime.now(UTC))
    return landing_ids


with DAG(
    dag_id="watch_checkpoints",
    description="Find checkpoints as they land and start their evaluation, each exactly once.",
    schedule="@continuous",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    tags=["checkpoint-eval", "watch"],
    doc_md=__doc__,
    default_args={
        "owner": "checkpoint-eval",
        "retries": 3,
        "retry_delay": timedelta(seconds=15),
        "retry_exponential_backoff": True,
        "max_retry_delay": timedelta(minutes=5),
    },
) as dag:
    due = CheckpointSensor(task_id="await_checkpoints")
    dispatch = TriggerDagRunOperator.partial(
        task_id="dispatch",
        logical_date=None,
        skip_when_already_exists=True,
        max_active_tis_per_dagrun=1,
        map_index_template="{{ task.trigger_run_id }}",
    ).expand_kwargs(due.output)
    dispatch >> record_dispatch(due.output)
