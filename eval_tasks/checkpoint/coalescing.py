"""A backlog of health evaluations -> which are skipped on purpose, and whether another is started now. Pure.

Only where a training run's configuration asks for it (`coalesce_beyond`): checkpoints that land faster than they can be
evaluated would be read ever later, and the health of the newest is what a person can still act on.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from eval_tasks.checkpoint.ledger import Change, KnownLanding
from eval_tasks.checkpoint.tiers import EvaluatedRun, dag_run_id

# An evaluation that was started this long ago and has not ended hangs or has failed: it holds up nothing any more.
_STUCK = timedelta(days=1)


def coalesce(run: EvaluatedRun, rows: Sequence[KnownLanding], now: datetime) -> list[Change]:
    """The changes that skip the oldest waiting health evaluations of one training run; none while the backlog is small.

    What is left of the waiting ones fits beside those under way, the newest always. A selection evaluation of the same
    checkpoint is never skipped.
    """
    limit = run.health.coalesce_beyond if run.health is not None else None
    if limit is None:
        return []
    waiting, n_under_way = _backlog(rows, now)
    n_backlog = len(waiting) + n_under_way
    if n_backlog <= limit:
        return []
    return [
        _skipped(row, f"skipped on purpose: {n_backlog} health evaluations waited or ran, more than {limit}")
        for row in waiting[: -max(1, limit - n_under_way)]
    ]


def may_start(run: EvaluatedRun, rows: Sequence[KnownLanding], now: datetime) -> bool:
    """Whether another health evaluation of this training run may be started beside those under way."""
    limit = run.health.coalesce_beyond if run.health is not None else None
    return limit is None or _backlog(rows, now)[1] < limit


def _backlog(rows: Sequence[KnownLanding], now: datetime) -> tuple[list[KnownLanding], int]:
    """The landings whose health evaluation waits to be started, by step, and how many are under way."""
    waiting, n_under_way = [], 0
    for row in rows:
        health = dag_run_id("health", row.landing)
        if health not in row.dag_runs or health in row.finished:
            continue
        if row.state == "ready":
            waiting.append(row)
        elif row.state == "dispatched" and now - datetime.fromisoformat(row.changed_at) < _STUCK:
            n_under_way += 1
    return sorted(waiting, key=lambda row: (row.landing.step, row.first_seen_at)), n_under_way


def _skipped(row: KnownLanding, reason: str) -> Change:
    health = dag_run_id("health", row.landing)
    left = tuple(dag_run for dag_run in row.dag_runs if dag_run != health)
    return Change(
        landing=row.landing,
        state="ready" if left else "skipped",
        reason=reason,
        dag_runs=left,
        alerted=row.alerted,
        skipped=(*row.skipped, health),
    )
