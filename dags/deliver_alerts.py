"""### deliver_alerts: send what people should know

`deliver` waits in the triggerer and sends the alerts of the catalog to the channels of the configuration file (webhook,
Slack, mail ... by Apprise; the log where none is configured), each once to each, and raises an alert for every health
verdict that is late. The next run starts by itself; one ends after an hour. Changes of the configuration count from the
next pass on.

**When it fails.** Its log names the catalog or the configuration field; it keeps trying. A channel that is away or
hangs is no failure: its alerts wait, and are tried again after 30 s, a minute, two ... up to a quarter of an hour, for
as long as it takes. `python -m eval_tasks alerts list` shows what waits, and why.

**Whom it hurts.** On-call people are not told. Nothing is lost: alerts stay in the catalog and are sent when this runs
again.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from checkpoint_eval.alerting import DeliverAlerts

with DAG(
    dag_id="deliver_alerts",
    description="Send alerts to the configured channels, each once.",
    schedule="@continuous",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    tags=["checkpoint-eval", "alerts"],
    doc_md=__doc__,
    default_args={
        "owner": "checkpoint-eval",
        "retries": 3,
        "retry_delay": timedelta(seconds=15),
        "retry_exponential_backoff": True,
        "max_retry_delay": timedelta(minutes=5),
    },
) as dag:
    DeliverAlerts(task_id="deliver")
