"""The landing ledger -> one alert for each health verdict that is later than its training run's deadline.

A landing counts from its last change in storage. While a block holds its environment the clock stands: the block has
its own alert, and what waits is late only when it takes as long again once it was explained.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from eval_tasks.digests import digest_parts, short_id
from eval_tasks.gate import gate
from eval_tasks.records import Alert
from eval_tasks.settings import Config, TrainingRun
from eval_tasks.store import LandingRow, Store

KIND = "health_late"


def raise_late(store: Store, config: Config, now: datetime) -> list[str]:
    """Raise what is to be raised at `now`; the landing ids that are late for the first time."""
    late = []
    for run in config.training_runs:
        if run.health is None:
            continue
        waiting = [row for row in store.catalog.landings(run.name) if _unfinished(row)]
        if not waiting:
            continue
        environment = config.environment(run.environment).name
        if not gate(store, environment=environment).open:
            continue
        freed = _last_explained(store, environment)
        for row in waiting:
            began = max(filter(None, (datetime.fromisoformat(row.first_seen_at), freed)))
            if now - began > timedelta(seconds=run.health_deadline_seconds) and _raise(store, run, row, now):
                late.append(row.landing.landing_id)
    return late


def _unfinished(row: LandingRow) -> bool:
    due = {dag_run for dag_run in row.dag_runs if dag_run.partition("__")[0] == "health"}
    return row.state in ("ready", "dispatched") and not due <= set(row.finished)


def _last_explained(store: Store, environment: str) -> datetime | None:
    """When the environment was last let go, if ever."""
    known = store.catalog.fingerprints_of(environment)
    moments = [
        datetime.fromisoformat(block.explained_at)
        for block in store.catalog.blocks()
        if block.explained_at is not None and (not known or block.fingerprint in known)
    ]
    return max(moments, default=None)


def _raise(store: Store, run: TrainingRun, row: LandingRow, now: datetime) -> bool:
    landing = row.landing
    minutes = run.health_deadline_seconds / 60
    return store.catalog.raise_alert(
        Alert(
            alert_id=short_id(digest_parts([KIND, landing.landing_id])),
            kind=KIND,
            title=f"{run.name} step {landing.step:,}: no health verdict {minutes:g} minutes after it landed",
            body=(
                f"{landing.uri} was last changed at {row.first_seen_at} and is {row.state}; its evaluation "
                f"({', '.join(row.dag_runs)}) has not ended. Look at that DAG run: a failed task is cleared to go on, "
                "a queued one waits for others (max_active_runs) or for room for its pods. A model that takes longer "
                "to load needs a longer health_deadline_seconds, or pods that are kept warm."
            ),
            training_run=run.name,
            created_at=now.isoformat(timespec="seconds"),
        )
    )
