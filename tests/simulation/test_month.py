"""A small month here, the whole one by `make simulate-month` and in the full suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval_tasks.store.catalog.deliveries import Deliveries
from tests.simulation import month


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1,localhost")
    for name in ("STORE_URI", "CATALOG_URL", "CONFIG"):
        monkeypatch.delenv(f"CHECKPOINT_EVAL_{name}", raising=False)


@pytest.mark.full
def test_a_month_loses_nothing_doubles_nothing_and_tells_each_alert_once(tmp_path: Path) -> None:
    line = month.simulate(tmp_path, 240)
    assert line["messages"] == line["alerts"] > 10
    assert line["attempts"] > line["messages"]


@pytest.mark.full
def test_the_claims_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An outbox that forgets what was sent tells alerts again, and the month says so."""
    monkeypatch.setattr(Deliveries, "delivered", lambda *_: True)
    with pytest.raises(SystemExit, match="each alert was told once"):
        month.simulate(tmp_path, 120)
