"""### maintenance: put the store in order, once a day

`maintain` drops queue rows that a closed run has left, removes files that nothing names once they are older than the
grace time, and thins the outputs of old health runs where the configuration asks for it. Everything else is kept for
ever. `python -m eval_tasks maintenance` lists what the next run would do.

**When it fails.** Its log names the file or the catalog; clear it, or wait for tomorrow's.

**Whom it hurts.** Nobody: storage grows until it runs again.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG, task


@task
def maintain() -> dict[str, int]:
    """Do what the configuration allows, and log what was done."""
    from checkpoint_eval.flow import airflow_errors
    from eval_tasks.maintenance import maintenance
    from eval_tasks.settings import Settings, load_config
    from eval_tasks.store import open_store

    settings = Settings()
    with airflow_errors(), open_store(settings) as store:
        report = maintenance(store, load_config(settings.config).maintenance, datetime.now(UTC), apply=True)
    for orphan in (*report.removed, *report.waiting):
        logging.getLogger(__name__).info("nothing names %s (%d bytes)", orphan.name, orphan.size)
    return {
        "compacted_rows": sum(report.compacted.values()),
        "removed_files": len(report.removed),
        "files_in_grace": len(report.waiting),
        "thinned_runs": len(report.thinned),
    }


with DAG(
    dag_id="maintenance",
    description="Put the store in order: queue rows of closed runs, files that nothing names.",
    schedule="30 3 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    tags=["checkpoint-eval", "maintenance"],
    doc_md=__doc__,
    default_args={"owner": "checkpoint-eval", "retries": 2, "retry_delay": timedelta(minutes=5)},
) as dag:
    maintain()
