"""Alerts: each once."""

from __future__ import annotations

import pytest

from eval_tasks.errors import UserError
from eval_tasks.records import Alert
from eval_tasks.store import Store
from tests.store.samples import NOW

ALERT = Alert(alert_id="a1", kind="excursion", title="t", body="b", run_id="r", training_run="tiny", created_at=NOW)


def test_an_alert_is_new_once(store: Store) -> None:
    assert store.catalog.raise_alert(ALERT)
    assert not store.catalog.raise_alert(ALERT)
    assert store.catalog.alerts() == [ALERT]


def test_alerts_are_filtered_and_newest_first(store: Store) -> None:
    other = Alert(alert_id="a2", kind="block", title="t", body="b", created_at=NOW)
    store.catalog.raise_alert(ALERT)
    store.catalog.raise_alert(other)
    assert store.catalog.alerts() == [other, ALERT]
    assert store.catalog.alerts(limit=1) == [other]
    assert store.catalog.alerts(training_run="tiny") == store.catalog.alerts(run_id="r") == [ALERT]
    assert store.catalog.alerts(kind="block") == [other]


def test_an_acknowledged_alert_says_by_whom_and_why(store: Store) -> None:
    store.catalog.raise_alert(ALERT)
    with pytest.raises(UserError, match="a name and a reason"):
        store.catalog.acknowledge_alert("a1", "", "seen", NOW)
    seen = store.catalog.acknowledge_alert("a1", "ann", "tokenizer bug", NOW)
    assert seen.acknowledged_by == "ann"
    assert seen.acknowledged_reason == "tokenizer bug (2026-01-31T12:00:00.000000+00:00)"
    assert store.catalog.alerts(acknowledged=True) == [seen]
    assert store.catalog.alerts(acknowledged=False) == []
    assert not store.catalog.raise_alert(ALERT)
    with pytest.raises(UserError, match="was acknowledged by 'ann'"):
        store.catalog.acknowledge_alert("a1", "bob", "seen", NOW)
    with pytest.raises(UserError, match="no alert 'a3'"):
        store.catalog.acknowledge_alert("a3", "bob", "seen", NOW)
