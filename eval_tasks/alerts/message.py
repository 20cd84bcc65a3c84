"""An alert -> the title and the text of its one message, with a link to where it can be looked at."""

from __future__ import annotations

from eval_tasks.errors import EvalError
from eval_tasks.records import Alert
from eval_tasks.store import Store

# Where a person looks first, whatever run it was found in.
_DAGS = {
    "checkpoint_incomplete": "watch_checkpoints",
    "checkpoint_broken": "watch_checkpoints",
    "corrupt_checkpoint": "watch_checkpoints",
    "health_late": "evaluate_health",
    "determinism_block": "determinism_nightly",
}


def message(store: Store, alert: Alert, base_url: str) -> tuple[str, str]:
    """(title, body). The body ends with what was done about it, its id, and the link when `base_url` is known."""
    lines = [alert.body.rstrip(), "", f"raised at {alert.created_at} (UTC), kind {alert.kind}"]
    if alert.acknowledged_by:
        lines.append(f"acknowledged by {alert.acknowledged_by}: {alert.acknowledged_reason}")
    else:
        lines.append(f"acknowledge: python -m eval_tasks alerts acknowledge {alert.alert_id} --reason ...")
    if base_url:
        lines.append(f"{base_url.rstrip('/')}{_path(store, alert)}")
    return alert.title, "\n".join(lines)


def _path(store: Store, alert: Alert) -> str:
    """The page of Airflow's UI: the DAG run that evaluates the checkpoint where the ledger knows it, else its DAG."""
    if alert.kind in _DAGS:
        return f"/dags/{_DAGS[alert.kind]}/runs"
    if alert.run_id is None:
        return "/dags"
    try:
        return _path_of_run(store, alert.run_id)
    except EvalError:  # whatever cannot be read of the run: without its link the alert is sent all the same
        return "/dags"


def _path_of_run(store: Store, run_id: str) -> str:
    run = store.catalog.run(run_id)
    dag = f"/dags/evaluate_{run.tier}/runs"
    started = [
        dag_run
        for row in store.catalog.landings(run.training_run)
        if row.landing.step == run.step and row.landing.uri == run.checkpoint_uri
        for dag_run in row.dag_runs
        if dag_run.partition("__")[0] == run.tier
    ]
    return f"{dag}/{started[-1]}" if started else dag
