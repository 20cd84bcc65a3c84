"""The maintenance step. Everything is kept for ever, but for what the configuration lets go.

Only files that nothing names, and have not been changed for the grace time, are removed. Outputs are thinned of health
runs alone, never of a run that a baseline, a block or a comparison of reruns stands on.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from eval_tasks.errors import EvalError
from eval_tasks.policies import MaintenancePolicy
from eval_tasks.records import Run
from eval_tasks.store import Orphan, Store

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceReport:
    """What was done or, without `applied`, what would be. `waiting`: orphans within their grace time.

    `removed` and `waiting` are files; `compacted` counts queue rows by run; `thinned` maps runs to bytes saved (0 where
    that is not known yet).
    """

    applied: bool
    compacted: dict[str, int]
    removed: tuple[Orphan, ...]
    waiting: tuple[Orphan, ...]
    thinned: dict[str, int]


def maintenance(store: Store, policy: MaintenancePolicy, now: datetime, *, apply: bool) -> MaintenanceReport:
    """Do, or with `apply` False only list, what the policy allows at `now`."""
    compacted = _compact(store, apply=apply)
    thinned = _thin(store, policy, now, apply=apply)
    orphans = store.upkeep.orphans()
    due = [orphan for orphan in orphans if _is_due(orphan, policy, now)]
    waiting = [orphan for orphan in orphans if orphan not in due]
    if apply:
        _remove(store, due)
    return MaintenanceReport(
        applied=apply, compacted=compacted, removed=tuple(due), waiting=tuple(waiting), thinned=thinned
    )


def _compact(store: Store, *, apply: bool) -> dict[str, int]:
    """Queue rows of runs that are closed: a process that died after closing has left them."""
    found = {
        run_id: n_rows for run_id, n_rows in store.queue.uncompacted().items() if store.responses.is_closed(run_id)
    }
    if apply:
        for run_id in found:
            store.queue.compact(run_id)
    return found


def _is_due(orphan: Orphan, policy: MaintenancePolicy, now: datetime) -> bool:
    """Past its grace time; a file whose age is not known never is."""
    if orphan.modified is None:
        return False
    return now.timestamp() - orphan.modified >= timedelta(days=policy.orphan_grace_days).total_seconds()


def _remove(store: Store, due: Sequence[Orphan]) -> None:
    """Looked at once more each: a blob that was stored long ago may have been named again just now."""
    still = {orphan.name for orphan in store.upkeep.orphans()} if due else set()
    for orphan in due:
        if orphan.name in still:
            store.upkeep.remove(orphan)
            _log.info("removed %s (%d bytes): nothing names it", orphan.name, orphan.size)


def _thin(store: Store, policy: MaintenancePolicy, now: datetime, *, apply: bool) -> dict[str, int]:
    if policy.thin_health_after_days is None:
        return {}
    before = now - timedelta(days=policy.thin_health_after_days)
    protected = store.catalog.runs_stood_on()
    thinned: dict[str, int] = {}
    for run in store.catalog.runs(tier="health", status="closed"):
        if not _may_be_thinned(run, before) or run.run_id in protected or store.responses.thinned_at(run.run_id):
            continue
        try:
            thinned[run.run_id] = store.responses.thin(run.run_id, now.isoformat(timespec="seconds")) if apply else 0
        except EvalError as error:  # a damaged file is left as it is, and holds up no other
            _log.warning("run %s was not thinned: %s", run.run_id, error)
    return thinned


def _may_be_thinned(run: Run, before: datetime) -> bool:
    if run.tier != "health" or run.judging is not None or run.closed_at is None:
        return False
    return datetime.fromisoformat(run.closed_at) < before
