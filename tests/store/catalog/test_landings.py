"""The landing ledger."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from eval_tasks.errors import UserError
from eval_tasks.records import Landing
from eval_tasks.store import Store

T0 = datetime(2026, 1, 31, 12, tzinfo=UTC)


def landing(size: int = 1, step: int = 100, training_run: str = "tiny") -> Landing:
    uri = f"s3://bucket/{training_run}/step-{step}"
    return Landing(training_run=training_run, step=step, uri=uri, listing=(("config.json", size, "etag"),))


def later(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def test_a_landing_is_recorded_once(store: Store) -> None:
    row = store.catalog.see_landing(landing(), T0)
    assert (row.landing, row.state, row.first_seen_at) == (landing(), "waiting", "2026-01-31T12:00:00.000000+00:00")
    assert store.catalog.see_landing(landing(), later(60)) == row
    assert store.catalog.landings() == [row]
    assert store.catalog.landing(landing().landing_id) == row


def test_a_growing_directory_is_one_wait(store: Store) -> None:
    store.catalog.see_landing(landing(1), T0)
    store.catalog.mark_landing(landing(1).landing_id, alerted=True, now=later(1))
    row = store.catalog.see_landing(landing(2), later(10))
    assert row.first_seen_at == "2026-01-31T12:00:10.000000+00:00"
    assert row.place_first_seen_at == "2026-01-31T12:00:00.000000+00:00"
    assert row.alerted
    assert [r.state for r in store.catalog.landings("tiny")] == ["superseded", "waiting"]


def test_a_dispatched_checkpoint_that_is_overwritten_is_a_new_one(store: Store) -> None:
    store.catalog.see_landing(landing(1), T0)
    store.catalog.mark_landing(landing(1).landing_id, state="dispatched", dag_runs=["r1"], alerted=True, now=later(1))
    row = store.catalog.see_landing(landing(2), later(10))
    assert (row.state, row.alerted, row.place_first_seen_at) == ("waiting", False, row.first_seen_at)
    assert store.catalog.landing(landing(1).landing_id).state == "dispatched"
    assert store.catalog.see_landing(landing(1), later(20)).state == "dispatched"


@pytest.mark.parametrize("state", ["gone", "superseded"])
def test_a_listing_that_comes_back_waits_again(store: Store, state: str) -> None:
    store.catalog.see_landing(landing(), T0)
    store.catalog.mark_landing(landing().landing_id, state=state, now=later(1))
    row = store.catalog.see_landing(landing(), later(10))
    assert (row.state, row.first_seen_at) == ("waiting", "2026-01-31T12:00:10.000000+00:00")


def test_marks_change_what_they_name(store: Store) -> None:
    store.catalog.see_landing(landing(), T0)
    broken = store.catalog.mark_landing(landing().landing_id, state="broken", reason="missing_shard", now=later(5))
    assert (broken.state, broken.reason, broken.changed_at) == (
        "broken",
        "missing_shard",
        "2026-01-31T12:00:05.000000+00:00",
    )
    noted = store.catalog.mark_landing(landing().landing_id, dag_runs=("a", "b"), alerted=True, now=later(6))
    assert (noted.state, noted.reason, noted.changed_at) == (broken.state, broken.reason, broken.changed_at)
    assert (noted.dag_runs, noted.alerted) == (("a", "b"), True)
    cleared = store.catalog.mark_landing(landing().landing_id, state="ready", reason="", alerted=False, now=later(7))
    assert (cleared.reason, cleared.alerted, cleared.dag_runs) == ("", False, ("a", "b"))
    assert store.catalog.landings(state="ready") == [cleared]
    assert store.catalog.landings(state="broken") == []


def test_landings_are_in_numeric_order_by_training_run(store: Store) -> None:
    for step, training_run in ((1000, "b"), (200, "b"), (30, "a")):
        store.catalog.see_landing(landing(step=step, training_run=training_run), T0)
    assert [r.landing.step for r in store.catalog.landings()] == [30, 200, 1000]
    assert [r.landing.step for r in store.catalog.landings("b", "waiting")] == [200, 1000]


def test_what_was_never_seen_cannot_be_marked(store: Store) -> None:
    store.catalog.see_landing(landing(), T0)
    with pytest.raises(UserError, match="no landing 'x'"):
        store.catalog.mark_landing("x", state="gone", now=T0)
    with pytest.raises(UserError, match="no landing 'x'"):
        store.catalog.landing("x")


def test_times_are_kept_in_utc_and_need_a_zone(store: Store) -> None:
    elsewhere = T0.astimezone(timezone(timedelta(hours=9)))
    assert store.catalog.see_landing(landing(), elsewhere).first_seen_at == "2026-01-31T12:00:00.000000+00:00"
    with pytest.raises(UserError, match="without its zone"):
        store.catalog.see_landing(landing(2), datetime(2026, 1, 31))  # noqa: DTZ001
