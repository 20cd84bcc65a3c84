"""What the ledger knows + what lies in storage now -> what changes in the ledger. Pure: no storage, no clock.

A landing waits until its listing has been quiet for a while, its marker is there (if one is configured) and its content
is complete; then it is ready, with the DAG runs it gets decided once and for good; it is dispatched when these were
fired. `ready` is left only after firing, and run ids are functions of the landing, so whatever is killed in between,
each DAG run is started exactly once. The ledger itself supersedes a listing when another one is seen at its place, and
lets one that was gone or superseded wait anew when it is seen again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from eval_tasks.checkpoint.listing import Sighting
from eval_tasks.checkpoint.reasons import Problem
from eval_tasks.checkpoint.tiers import EvaluatedRun, dag_run_id, planned_runs, tier_of
from eval_tasks.records import Landing

State = Literal["waiting", "ready", "dispatched", "broken", "gone", "skipped"]
AlertKind = Literal["checkpoint_incomplete", "checkpoint_broken"]

# An incomplete one whose listing does not change is looked into again: a size and a time are not its content.
RECHECK_SECONDS = 300.0


class KnownLanding(Protocol):
    """A row of the ledger (`store.LandingRow` has it). Times are UTC, ISO 8601."""

    @property
    def landing(self) -> Landing: ...  # noqa: D102

    @property
    def state(self) -> str: ...  # noqa: D102

    @property
    def reason(self) -> str: ...  # noqa: D102

    @property
    def first_seen_at(self) -> str: ...  # noqa: D102

    @property
    def place_first_seen_at(self) -> str: ...  # noqa: D102

    @property
    def dag_runs(self) -> Sequence[str]: ...  # noqa: D102

    @property
    def alerted(self) -> bool: ...  # noqa: D102

    @property
    def changed_at(self) -> str: ...  # noqa: D102

    @property
    def finished(self) -> Sequence[str]: ...  # noqa: D102

    @property
    def skipped(self) -> Sequence[str]: ...  # noqa: D102

    @property
    def promoted(self) -> bool: ...  # noqa: D102


class WatchPolicy(EvaluatedRun, Protocol):
    """What decides when a landing of a training run is ready (`settings.TrainingRun` has it)."""

    @property
    def marker(self) -> str | None: ...  # noqa: D102

    @property
    def quiet_seconds(self) -> float: ...  # noqa: D102

    @property
    def alert_after_seconds(self) -> float: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A row's new values. `alert` is raised before the row is written, so that a crash between raises it again."""

    landing: Landing
    state: State
    reason: str = ""
    dag_runs: tuple[str, ...] = ()
    alerted: bool = False
    alert: AlertKind | None = None
    skipped: tuple[str, ...] = ()


def due_for_check(
    run: WatchPolicy,
    sightings: Sequence[Sighting],
    rows: Sequence[KnownLanding],
    checked_at: Mapping[Landing, datetime],
    now: datetime,
) -> list[Sighting]:
    """The sightings whose content is to be looked into now: waiting, marked, quiet, not looked into just before.

    `checked_at`: when each landing was looked into last, as far as the caller remembers.
    """
    known = {row.landing: row for row in rows}
    due = []
    for sighting in sightings:
        row = known.get(sighting.landing)
        if row is None or row.state != "waiting" or not sighting.marked or not _is_quiet(run, row, now):
            continue
        last = checked_at.get(row.landing)
        if last is None or (now - last).total_seconds() >= RECHECK_SECONDS:
            due.append(sighting)
    return due


def decide(
    run: WatchPolicy,
    sightings: Sequence[Sighting],
    rows: Sequence[KnownLanding],
    checked: Mapping[Landing, Problem | None],
    now: datetime,
) -> list[Change]:
    """The changes of one training run's rows, in step order.

    `checked` has the problem (None: complete) of each landing that was looked into just now.
    """
    here = {sighting.landing: sighting for sighting in sightings}
    ordinals = _Ordinals(rows)
    changes = []
    for row in sorted(rows, key=lambda row: (row.landing.step, row.landing.uri, row.first_seen_at)):
        sighting = here.get(row.landing)
        change = None
        if sighting is None:
            change = _absent(row)
        elif row.state in ("ready", "dispatched", "skipped"):
            change = _promoted(run, row) if sighting.promoted or row.promoted else None
        elif row.state == "waiting":
            problem = checked.get(row.landing)
            if row.landing in checked and problem is None:
                change = _ready(run, row, sighting, ordinals)
            else:
                change = _waiting(run, row, sighting, problem, now)
        if change is not None:
            changes.append(change)
    return changes


def _absent(row: KnownLanding) -> Change | None:
    if row.state not in ("waiting", "ready"):
        return None
    return _changed(row, state="gone", reason=f"gone: {row.landing.uri} was removed before it was evaluated")


def _ready(run: WatchPolicy, row: KnownLanding, sighting: Sighting, ordinals: _Ordinals) -> Change:
    counted = ordinals.counts(row.landing.step, run.selection.every if run.selection else 1)
    dag_runs = planned_runs(run, row.landing, counted=counted, promoted=sighting.promoted or row.promoted)
    if not dag_runs:
        return _changed(row, state="dispatched", reason="no tier is due for this step")
    return _changed(row, state="ready", dag_runs=dag_runs)


def _promoted(run: WatchPolicy, row: KnownLanding) -> Change | None:
    wanted = dag_run_id("selection", row.landing)
    if run.selection is None or wanted in row.dag_runs:
        return None
    return _changed(row, state="ready", reason="promoted", dag_runs=(*row.dag_runs, wanted))


def _waiting(
    run: WatchPolicy, row: KnownLanding, sighting: Sighting, problem: Problem | None, now: datetime
) -> Change | None:
    if problem is not None and problem.reason == "gone":
        return None  # the next listing tells whether it was removed or replaced
    if problem is not None and not problem.heals:
        return _changed(row, state="broken", reason=str(problem), alerted=True, alert="checkpoint_broken")
    overdue = _age(row.place_first_seen_at, now) >= run.alert_after_seconds
    if overdue and not row.alerted:
        reason = str(problem or _without_check(run, row, sighting, now) or row.reason)
        if reason:
            return _changed(row, state="waiting", reason=reason, alerted=True, alert="checkpoint_incomplete")
    if problem is None or str(problem) == row.reason:
        return None
    return _changed(row, state="waiting", reason=str(problem))


def _without_check(run: WatchPolicy, row: KnownLanding, sighting: Sighting, now: datetime) -> Problem | None:
    """Why a landing was not even looked into."""
    uri, since = row.landing.uri, row.place_first_seen_at
    if not sighting.marked:
        return Problem(
            reason="no_marker",
            message=f"{uri} has no {run.marker!r}, seen first at {since}; let the training run write it, write it by "
            "hand, or take 'marker' out of the configuration",
        )
    if not _is_quiet(run, row, now):
        return Problem(
            reason="unsettled",
            message=f"the files of {uri} keep changing since {since} and were never unchanged for "
            f"{run.quiet_seconds:g} s; stop what writes to them",
        )
    return None


class _Ordinals:
    """Counts the steps that were ever ready, so that every k-th gets the selection tier, whatever came between."""

    def __init__(self, rows: Sequence[KnownLanding]) -> None:
        ready = [row for row in rows if row.dag_runs or row.state in ("ready", "dispatched", "skipped")]
        self._steps = {row.landing.step for row in ready}
        self._selected = {row.landing.step for row in ready if any(tier_of(run) == "selection" for run in row.dag_runs)}

    def counts(self, step: int, every: int) -> bool:
        """Whether the step, ready now, is a k-th one. New content of a step has what its old content had."""
        if step in self._steps:
            return step in self._selected
        self._steps.add(step)
        counted = len(self._steps) % every == 0
        if counted:
            self._selected.add(step)
        return counted


def _changed(
    row: KnownLanding,
    *,
    state: State,
    reason: str = "",
    dag_runs: tuple[str, ...] | None = None,
    alerted: bool | None = None,
    alert: AlertKind | None = None,
) -> Change:
    return Change(
        landing=row.landing,
        state=state,
        reason=reason,
        dag_runs=tuple(row.dag_runs) if dag_runs is None else dag_runs,
        alerted=row.alerted if alerted is None else alerted,
        alert=alert,
        skipped=tuple(row.skipped),
    )


def _is_quiet(run: WatchPolicy, row: KnownLanding, now: datetime) -> bool:
    return _age(row.first_seen_at, now) >= run.quiet_seconds


def _age(moment: str, now: datetime) -> float:
    return (now - datetime.fromisoformat(moment)).total_seconds()
