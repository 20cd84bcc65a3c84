"""The watcher's decisions in a world of dictionaries: time is given, storage and ledger are values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_tasks.checkpoint import Change, Problem, Sighting, decide, dispatches, due_for_check
from eval_tasks.records import Landing
from eval_tasks.settings import TierPolicy, TrainingRun

START = datetime(2026, 1, 31, 12, tzinfo=UTC)
MISSING = Problem(reason="missing_shard", message="a shard is missing")
POINTER = Problem(reason="pointer_file", message="a pointer")


def _run(**changes: object) -> TrainingRun:
    values: dict[str, object] = {
        "name": "tiny",
        "uri": "/runs/tiny",
        "quiet_seconds": 60,
        "alert_after_seconds": 600,
        "health": TierPolicy(suite="health"),
        "selection": TierPolicy(suite="selection", every=2, baseline="first", rule="ship"),
    }
    return TrainingRun(**(values | changes))


@dataclass(frozen=True)
class Row:
    landing: Landing
    state: str
    reason: str
    first_seen_at: str
    place_first_seen_at: str
    dag_runs: tuple[str, ...] = ()
    alerted: bool = False
    changed_at: str = START.isoformat()
    finished: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    promoted: bool = False


@dataclass
class World:
    """A ledger, a storage, a clock, and an Airflow that starts a run id once."""

    run: TrainingRun = field(default_factory=_run)
    now: datetime = START
    storage: dict[int, tuple[str, Problem | None]] = field(default_factory=dict)
    marked: set[int] = field(default_factory=set)
    promoted: set[int] = field(default_factory=set)
    rows: dict[str, Row] = field(default_factory=dict)
    checked_at: dict[Landing, datetime] = field(default_factory=dict)
    alerts: list[tuple[str, str]] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    fired_after_record: list[str] = field(default_factory=list)
    recorded: set[str] = field(default_factory=set)

    def landing(self, step: int) -> Landing:
        version, _ = self.storage[step]
        return Landing(
            training_run="tiny", step=step, uri=f"/runs/tiny/step-{step}", listing=(("config.json", 2, version),)
        )

    def sightings(self) -> list[Sighting]:
        return [
            Sighting(
                landing=self.landing(step),
                marked=self.run.marker is None or step in self.marked,
                promoted=step in self.promoted,
            )
            for step in sorted(self.storage)
        ]

    def poll(self, after: float = 0) -> list[Change]:
        self.now += timedelta(seconds=after)
        moment, sightings = self.now.isoformat(), self.sightings()
        for sighting in sightings:
            self._see(sighting.landing, moment)
        due = due_for_check(self.run, sightings, list(self.rows.values()), self.checked_at, self.now)
        checked = {s.landing: self.storage[s.landing.step][1] for s in due}
        self.checked_at |= dict.fromkeys(checked, self.now)
        changes = decide(self.run, sightings, list(self.rows.values()), checked, self.now)
        for change in changes:
            row = self.rows[change.landing.landing_id]
            if change.alert:
                self.alerts.append((change.alert, change.reason.split(":")[0]))
            self.rows[change.landing.landing_id] = replace(
                row,
                state=change.state,
                reason=change.reason,
                dag_runs=change.dag_runs,
                alerted=change.alerted,
            )
        return changes

    def _see(self, landing: Landing, moment: str) -> None:
        """What the store's ledger does with a sighting."""
        known = self.rows.get(landing.landing_id)
        if known is not None and known.state not in ("gone", "superseded"):
            return
        fresh = Row(landing, "waiting", "", moment, moment)
        for other in list(self.rows.values()):
            if other.landing.uri == landing.uri and other.state in ("waiting", "ready", "broken"):
                since = min(fresh.place_first_seen_at, other.place_first_seen_at)
                fresh = replace(fresh, place_first_seen_at=since, alerted=fresh.alerted or other.alerted)
                self.rows[other.landing.landing_id] = replace(other, state="superseded")
        self.rows[landing.landing_id] = fresh

    def ready(self) -> list[Row]:
        ready = [row for row in self.rows.values() if row.state == "ready"]
        return sorted(ready, key=lambda row: (row.landing.step, row.landing.uri))

    def fire(self, rows: Sequence[Row], record: bool = True) -> None:
        for row in rows:
            for dispatch in dispatches(self.run, row.landing, row.dag_runs):
                run_id = dispatch["trigger_run_id"]
                if run_id in self.recorded and row.landing.step not in self.promoted:
                    self.fired_after_record.append(run_id)
                if run_id not in self.started:
                    self.started.append(run_id)
        for row in rows if record else ():
            self.recorded.update(row.dag_runs)
            self.rows[row.landing.landing_id] = replace(row, state="dispatched")

    def state(self, step: int) -> str:
        return self.rows[self.landing(step).landing_id].state

    def steps_started(self, tier: str) -> list[int]:
        return [int(run_id.split("__")[2]) for run_id in self.started if run_id.startswith(tier)]


def test_a_complete_one_is_ready_after_the_quiet_period() -> None:
    world = World(storage={1: ("a", None)})
    world.poll()
    world.poll(after=59)
    assert world.state(1) == "waiting"
    world.poll(after=1)
    assert world.state(1) == "ready"


def test_without_a_quiet_period_it_is_ready_at_once() -> None:
    world = World(run=_run(quiet_seconds=0), storage={1: ("a", None)})
    world.poll()
    assert world.state(1) == "ready"


def test_every_change_of_the_listing_begins_the_quiet_period_anew() -> None:
    world = World(storage={1: ("0", None)})
    for version in range(1, 6):
        world.poll(after=50)
        world.storage[1] = (str(version), None)
    world.poll(after=50)
    assert world.state(1) == "waiting"
    assert sorted(row.state for row in world.rows.values()) == ["superseded"] * 5 + ["waiting"]
    world.poll(after=60)
    assert world.state(1) == "ready"


def test_a_marker_is_waited_for_and_the_content_is_still_looked_into() -> None:
    world = World(run=_run(marker="_SUCCESS"), storage={1: ("a", MISSING)})
    world.poll()
    world.poll(after=100)
    assert (world.state(1), world.rows[world.landing(1).landing_id].reason) == ("waiting", "")
    world.marked.add(1)
    world.poll(after=10)
    assert world.rows[world.landing(1).landing_id].reason == "missing_shard: a shard is missing"
    world.storage[1] = ("b", None)
    world.poll()
    world.poll(after=60)
    assert world.state(1) == "ready"


def test_one_that_is_not_complete_holds_up_no_other_and_order_is_numeric() -> None:
    world = World(storage={10: ("a", None), 9: ("a", None), 2: ("a", MISSING), 100: ("a", None)})
    world.poll()
    world.poll(after=60)
    assert [row.landing.step for row in world.ready()] == [9, 10, 100]
    assert world.state(2) == "waiting"


@pytest.mark.parametrize(
    ("marker", "problem", "reason"),
    [(None, MISSING, "missing_shard"), ("_SUCCESS", None, "no_marker")],
)
def test_one_that_never_completes_raises_one_alert(marker: str | None, problem: Problem | None, reason: str) -> None:
    world = World(run=_run(marker=marker), storage={1: ("a", problem)})
    for _ in range(100):
        world.poll(after=30)
    assert world.alerts == [("checkpoint_incomplete", reason)]


def test_one_that_keeps_changing_raises_one_alert() -> None:
    world = World(storage={1: ("0", None)})
    for version in range(100):
        world.storage[1] = (str(version), None)
        world.poll(after=30)
    assert world.alerts == [("checkpoint_incomplete", "unsettled")]


def test_no_alert_before_the_limit() -> None:
    world = World(storage={1: ("a", MISSING)})
    world.poll()
    world.poll(after=599)
    assert world.alerts == []
    world.poll(after=1)
    assert world.alerts == [("checkpoint_incomplete", "missing_shard")]


def test_a_late_completion_after_an_alert_is_still_evaluated() -> None:
    world = World(storage={1: ("a", MISSING)})
    for _ in range(50):
        world.poll(after=30)
    world.storage[1] = ("b", None)
    world.poll()
    world.poll(after=60)
    assert world.state(1) == "ready"
    assert len(world.alerts) == 1


def test_bytes_that_change_under_an_unchanged_listing_are_found_later() -> None:
    world = World(storage={1: ("a", MISSING)})
    world.poll()
    world.poll(after=60)
    world.storage[1] = ("a", None)
    world.poll(after=30)
    assert world.state(1) == "waiting"
    world.poll(after=300)
    assert world.state(1) == "ready"


def test_a_broken_one_is_told_once_and_mended_by_new_content() -> None:
    world = World(storage={1: ("a", POINTER)})
    world.poll()
    for _ in range(50):
        world.poll(after=60)
    assert world.state(1) == "broken"
    assert world.alerts == [("checkpoint_broken", "pointer_file")]
    world.storage[1] = ("b", None)
    world.poll()
    world.poll(after=60)
    assert world.state(1) == "ready"


def test_the_same_path_with_new_content_is_evaluated_again() -> None:
    world = World(storage={1: ("a", None)})
    world.poll()
    world.poll(after=60)
    world.fire(world.ready())
    world.storage[1] = ("b", None)
    world.poll()
    world.poll(after=60)
    world.fire(world.ready())
    assert world.steps_started("health") == [1, 1]
    assert len(set(world.started)) == 2


def test_a_removed_one_is_gone_and_comes_back_with_its_old_listing() -> None:
    world = World(storage={1: ("a", None)})
    world.poll()
    gone = world.storage.pop(1)
    world.poll(after=100)
    assert [row.state for row in world.rows.values()] == ["gone"]
    world.storage[1] = gone
    world.poll(after=100)
    assert world.state(1) == "waiting"
    world.poll(after=60)
    assert world.state(1) == "ready"


def test_a_dispatched_one_that_rotation_removed_stays_dispatched() -> None:
    world = World(storage={1: ("a", None)})
    world.poll()
    world.poll(after=60)
    world.fire(world.ready())
    world.storage.clear()
    world.poll(after=60)
    assert [row.state for row in world.rows.values()] == ["dispatched"]


def test_every_second_one_and_each_promoted_one_gets_the_selection_tier() -> None:
    world = World(storage=dict.fromkeys(range(10, 60, 10), ("a", None)), promoted={30})
    world.poll()
    world.poll(after=60)
    world.fire(world.ready())
    assert world.steps_started("health") == [10, 20, 30, 40, 50]
    assert world.steps_started("selection") == [20, 30, 40]


def test_one_promoted_after_it_was_dispatched_gets_the_selection_tier_once() -> None:
    world = World(storage={10: ("a", None)})
    world.poll()
    world.poll(after=60)
    world.fire(world.ready())
    world.promoted.add(10)
    world.poll(after=60)
    world.fire(world.ready())
    assert world.poll(after=60) == []
    assert world.steps_started("health") == [10]
    assert world.steps_started("selection") == [10]


def test_new_content_of_a_step_does_not_shift_the_count() -> None:
    world = World(storage={10: ("a", None)})
    for version, step in enumerate([10, 10, 10, 20, 20, 30, 20, 40, 30]):
        world.storage[step] = (str(version), None)
        world.poll()
        world.poll(after=60)
        world.fire(world.ready())
    assert world.steps_started("selection") == [20, 20, 20, 40]


def test_without_a_tier_a_landing_is_done_with() -> None:
    world = World(run=_run(health=None, selection=None), storage={1: ("a", None)})
    world.poll()
    world.poll(after=60)
    assert world.state(1) == "dispatched"


def test_a_dispatch_carries_all_that_the_evaluation_needs() -> None:
    world = World(run=_run(environment="cpu", corpora=("c4",)), storage={1: ("a", None), 2: ("a", None)})
    world.poll()
    world.poll(after=60)
    landing = world.landing(2)
    row = world.rows[landing.landing_id]
    health, selection = dispatches(world.run, landing, row.dag_runs)
    assert health["trigger_dag_id"] == "evaluate_health"
    assert selection == {
        "trigger_dag_id": "evaluate_selection",
        "trigger_run_id": f"selection__tiny__2__{landing.landing_id[:12]}",
        "conf": {
            "landing_id": landing.landing_id,
            "training_run": "tiny",
            "step": 2,
            "checkpoint_uri": "/runs/tiny/step-2",
            "tier": "selection",
            "suite": "selection",
            "baseline": "first",
            "rule": "ship",
            "environment": "cpu",
            "corpora": ["c4"],
        },
    }


ACTIONS = st.sampled_from(
    ["write", "complete", "remove", "restore", "promote", "poll", "fire", "fire and die", "wait", "short wait"]
)


@settings(max_examples=300, deadline=None)
@given(script=st.lists(st.tuples(ACTIONS, st.integers(1, 5)), max_size=60))
def test_each_landing_is_dispatched_exactly_once_whatever_the_order_of_events(script: list[tuple[str, int]]) -> None:
    world, versions, removed = World(), count(), dict[int, tuple[str, Problem | None]]()
    for action, step in script:
        if action == "write":
            world.storage[step] = (str(next(versions)), MISSING)
        elif action == "complete":
            world.storage[step] = (str(next(versions)), None)
        elif action == "remove" and step in world.storage:
            removed[step] = world.storage.pop(step)
        elif action == "restore" and step in removed and step not in world.storage:
            world.storage[step] = removed[step]
        elif action == "promote":
            world.promoted.add(step)
        elif action == "poll":
            world.poll(after=20)
        elif action in ("fire", "fire and die"):
            world.fire(world.ready(), record=action == "fire")
        else:
            world.now += timedelta(seconds=90 if action == "wait" else 15)
    for _ in range(3):
        world.poll(after=400)
        world.fire(world.ready())
    # Never fired anew after it was recorded (a promotion apart, which adds a tier), never while it is not complete.
    assert world.fired_after_record == []
    complete = {step for step, (_, problem) in world.storage.items() if problem is None}
    started = set(world.started)
    for step in world.storage:
        landing = world.landing(step)
        assert (f"health__tiny__{step}__{landing.landing_id[:12]}" in started) == (step in complete)
        assert world.state(step) == ("dispatched" if step in complete else "waiting")
        if step in complete & world.promoted:
            assert f"selection__tiny__{step}__{landing.landing_id[:12]}" in started
    assert [row for row in world.rows.values() if row.state == "ready"] == []


@settings(max_examples=100, deadline=None)
@given(order=st.permutations(list(range(1, 13))), every=st.integers(1, 5), deaths=st.sets(st.integers(0, 11)))
def test_the_share_of_selected_steps_is_exact_in_any_order_of_landing(
    order: list[int], every: int, deaths: set[int]
) -> None:
    world = World(run=_run(quiet_seconds=0, selection=TierPolicy(suite="s", every=every)))
    for position, step in enumerate(order):
        world.storage[step] = ("a", None)
        world.poll(after=1)
        world.fire(world.ready(), record=position not in deaths)
    world.fire(world.ready())
    assert sorted(world.steps_started("health")) == list(range(1, 13))
    assert len(world.steps_started("selection")) == 12 // every
