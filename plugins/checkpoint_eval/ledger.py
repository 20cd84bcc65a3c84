"""The watcher's look at storage and its notes in the ledger. Knows the library; knows no Airflow.

The decisions are `eval_tasks.checkpoint.decide`'s; here storage is listed, content looked into, and the ledger written.
Imports of the library are inside the functions, since DAG files are parsed with this module loaded.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eval_tasks.checkpoint import Change, Sighting
    from eval_tasks.records import Landing
    from eval_tasks.settings import Config, TrainingRun
    from eval_tasks.store import LandingRow, Store

log = logging.getLogger(__name__)

# One pass fires at most this many landings, two DAG runs each: a backlog stays below Airflow's max_map_length (1,024).
MAX_LANDINGS_PER_PASS = 200
_BACKOFF_LIMIT_SECONDS = 600.0


class Watch:
    """Polls all training runs. Remembers, for itself only, what was looked into when and which storage fails."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._checked_at: dict[Landing, datetime] = {}
        self._failures: dict[str, tuple[int, datetime]] = {}

    def poll(self, config: Config, now: datetime) -> list[str]:
        """Look at every training run once; the ids of the landings that wait to be fired, in the order of firing.

        A training run whose storage fails holds up no other: it is left alone for twice as long after each failure.
        """
        from eval_tasks.errors import EvalError

        for run in config.training_runs:
            n_failures, not_before = self._failures.get(run.name, (0, now))
            if now < not_before:
                continue
            try:
                self._poll_run(run, now)
                self._failures.pop(run.name, None)
            except EvalError as error:
                delay = min(config.poll_seconds * 2**n_failures, _BACKOFF_LIMIT_SECONDS)
                self._failures[run.name] = (n_failures + 1, now + timedelta(seconds=delay))
                log.warning("training run %s: %s; looked at again in %.0f s", run.name, error, delay)
        return [row.landing.landing_id for row, _ in ready(self.store, config, now)]

    def _poll_run(self, run: TrainingRun, now: datetime) -> None:
        from eval_tasks.checkpoint import check_complete, coalesce, decide, due_for_check, list_sightings
        from eval_tasks.errors import InfraError

        sightings = list_sightings(run)
        rows = self._see(run, sightings, now)
        checked = {}
        for sighting in due_for_check(run, sightings, rows, self._checked_at, now):
            try:
                checked[sighting.landing] = check_complete(sighting.landing.uri)
            except InfraError as error:
                log.warning("training run %s: %s", run.name, error)
                continue
            self._checked_at[sighting.landing] = now
        for change in decide(run, sightings, rows, checked, now):
            _apply(self.store, change, now)
            if change.state != "waiting":
                self._checked_at.pop(change.landing, None)
        if run.health is not None and run.health.coalesce_beyond is not None:
            for change in coalesce(run, self.store.catalog.landings(run.name), now):
                _apply(self.store, change, now)

    def _see(self, run: TrainingRun, sightings: Sequence[Sighting], now: datetime) -> list[LandingRow]:
        """The training run's rows, after every listing that is new, or back, was noted."""
        rows = self.store.catalog.landings(run.name)
        settled = {row.landing for row in rows if row.state not in ("gone", "superseded")}
        new = [sighting.landing for sighting in sightings if sighting.landing not in settled]
        for landing in new:
            self.store.catalog.see_landing(landing, now)
            log.info("training run %s: step %d is there: %s", run.name, landing.step, landing.uri)
        return self.store.catalog.landings(run.name) if new else rows


def ready(store: Store, config: Config, now: datetime) -> list[tuple[LandingRow, list[dict[str, Any]]]]:
    """The landings to be fired in this pass, each with its dispatches: training runs as configured, steps in order.

    One whose tiers were all taken out of the configuration waits until they are back; so does one whose training run
    coalesces, and has as many evaluations under way as it may.
    """
    from eval_tasks.checkpoint import dispatches as library_dispatches

    rows = [
        (row, library_dispatches(run, row.landing, row.dag_runs))
        for run in config.training_runs
        if _has_room(store, run, now)
        for row in store.catalog.landings(run.name, state="ready")
    ]
    return [(row, fired) for row, fired in rows if fired][:MAX_LANDINGS_PER_PASS]


def _has_room(store: Store, run: TrainingRun, now: datetime) -> bool:
    from eval_tasks.checkpoint import may_start

    if run.health is None or run.health.coalesce_beyond is None:
        return True
    return may_start(run, store.catalog.landings(run.name), now)


def dispatches(
    store: Store, config: Config, landing_ids: Iterable[str], now: datetime | None = None
) -> list[dict[str, Any]]:
    """What is to be fired for these landings: `trigger_dag_id`, `trigger_run_id` and `conf` of each DAG run.

    A landing that meanwhile was replaced, removed or recorded has none.
    """
    wanted = set(landing_ids)
    moment = now or datetime.now(UTC)
    return [
        dispatch
        for row, fired in ready(store, config, moment)
        if row.landing.landing_id in wanted
        for dispatch in fired
    ]


def record_dispatch(store: Store, landing_ids: Iterable[str], now: datetime) -> None:
    """Note that everything these landings are due was fired. Only to be called after it was."""
    for landing_id in landing_ids:
        store.catalog.mark_landing(landing_id, state="dispatched", now=now)


def _apply(store: Store, change: Change, now: datetime) -> None:
    from eval_tasks.digests import digest_parts, short_id
    from eval_tasks.records import Alert

    landing = change.landing
    if change.alert is not None:
        what = "is not complete" if change.alert == "checkpoint_incomplete" else "is broken"
        store.catalog.raise_alert(
            Alert(
                alert_id=short_id(digest_parts([change.alert, landing.landing_id])),
                kind=change.alert,
                title=f"{landing.training_run}: step {landing.step} {what}: {change.reason.split(':')[0]}",
                body=change.reason,
                training_run=landing.training_run,
                created_at=now.isoformat(timespec="seconds"),
            )
        )
        log.warning("training run %s: step %d %s: %s", landing.training_run, landing.step, what, change.reason)
    store.catalog.mark_landing(
        landing.landing_id,
        state=change.state,
        reason=change.reason,
        dag_runs=change.dag_runs,
        alerted=change.alerted,
        skipped=change.skipped,
        now=now,
    )
    if change.state != "waiting":
        log.info("training run %s: step %d is %s %s", landing.training_run, landing.step, change.state, change.reason)
