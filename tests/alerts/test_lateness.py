"""Late health verdicts: each once, none while a block stands, none for what has ended."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from eval_tasks.alerts import raise_late
from eval_tasks.checkpoint import dag_run_id
from eval_tasks.records import Landing
from eval_tasks.settings import Config
from eval_tasks.store import Store

START = datetime(2026, 1, 31, 12, tzinfo=UTC)
LANDING = Landing(training_run="tiny", step=100, uri="/runs/tiny/step-100", listing=())
HEALTH, SELECTION = (dag_run_id(tier, LANDING) for tier in ("health", "selection"))


def config(**changes: Any) -> Config:
    run = {"name": "tiny", "uri": "/runs/tiny", "health": {"suite": "h"}, "health_deadline_seconds": 600}
    return Config.model_validate({"training_runs": [run | changes]})


def minutes(n: float) -> datetime:
    return START + timedelta(minutes=n)


@pytest.fixture
def landed(store: Store) -> Store:
    store.catalog.see_landing(LANDING, START)
    store.catalog.mark_landing(LANDING.landing_id, now=minutes(1), state="dispatched", dag_runs=(HEALTH, SELECTION))
    return store


def test_a_verdict_is_late_after_its_deadline_and_said_once(landed: Store) -> None:
    assert raise_late(landed, config(), minutes(10)) == []
    assert raise_late(landed, config(), minutes(10.1)) == [LANDING.landing_id]
    assert raise_late(landed, config(), minutes(30)) == []
    (alert,) = landed.catalog.alerts()
    assert alert.kind == "health_late"
    assert alert.title == "tiny step 100: no health verdict 10 minutes after it landed"
    assert HEALTH in alert.body


def test_one_that_has_ended_is_not_late_and_selection_has_no_deadline(landed: Store) -> None:
    landed.catalog.finish_landing(LANDING.landing_id, HEALTH)
    landed.catalog.finish_landing(LANDING.landing_id, HEALTH)
    assert landed.catalog.landing(LANDING.landing_id).finished == (HEALTH,)
    assert raise_late(landed, config(), minutes(100)) == []


def test_a_larger_model_has_a_longer_deadline(landed: Store) -> None:
    assert raise_late(landed, config(health_deadline_seconds=1800), minutes(29)) == []
    assert raise_late(landed, config(health_deadline_seconds=1800), minutes(31)) == [LANDING.landing_id]


def test_while_a_block_stands_nothing_is_late_and_the_clock_begins_anew_after_it(landed: Store) -> None:
    block_id = landed.catalog.open_block("f" * 32, "rows changed", minutes(2))
    assert raise_late(landed, config(), minutes(60)) == []
    landed.catalog.explain_block(block_id, "kim", "a driver was changed back", minutes(60))
    assert raise_late(landed, config(), minutes(69)) == []
    assert raise_late(landed, config(), minutes(71)) == [LANDING.landing_id]


def test_what_waits_in_storage_is_another_alerts_matter(store: Store) -> None:
    store.catalog.see_landing(LANDING, START)
    assert raise_late(store, config(), minutes(100)) == []


def test_a_training_run_without_health_evaluations_has_no_deadline(landed: Store) -> None:
    assert raise_late(landed, config(health=None), minutes(100)) == []
