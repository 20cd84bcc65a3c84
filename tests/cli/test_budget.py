"""`budget show`, and the forecast that planning prints, on a real ledger."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from eval_tasks.cli import main
from eval_tasks.settings import Settings
from eval_tasks.store import open_store
from tests.planned import register, write_checkpoint


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("STORE_URI", "CATALOG_URL", "CONFIG"):
        monkeypatch.delenv(f"CHECKPOINT_EVAL_{name}", raising=False)
    monkeypatch.setenv("CHECKPOINT_EVAL_HOME", str(folder))
    with open_store(Settings()) as store:
        register(store, tmp_path / "benchmarks")
    return folder


def configure(home: Path, *, tokens: int) -> None:
    document = {
        "environments": [{"name": "local", "usd_per_device_hour": 2.5, "tokens_per_second": 1000}],
        "budgets": [{"tier": "selection", "tokens": tokens}],
    }
    (home / "config.yaml").write_text(yaml.safe_dump(document))


def test_a_plan_is_forecast_then_counted_and_refused_beyond_its_budget(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(home, tokens=10_000_000)
    checkpoint = write_checkpoint(tmp_path / "step-3")
    assert main(["budget", "show"]) == 0
    assert "spent (forecasts of what is under way apart): none" in capsys.readouterr().out
    main(["resolve", str(checkpoint), "--json"])
    checkpoint_id = json.loads(capsys.readouterr().out)["checkpoint_id"]
    assert main(["plan", checkpoint_id, "--suite", "colours-all"]) == 0
    assert "forecast, at most: 146 items, " in capsys.readouterr().out
    main(["budget", "show", "--json"])
    shown = json.loads(capsys.readouterr().out)
    (line,) = shown["budgets"]
    assert line["used"] == 0 and line["reserved"] > 0
    assert [(row["tier"], row["runs"], row["under_way"]) for row in shown["spent"]] == [("selection", 0, 1)]

    configure(home, tokens=1)
    assert main(["plan", checkpoint_id, "--suite", "colours-all", "--repeat", "1"]) == 2
    assert "the budget of the selection tier for all training runs is spent" in capsys.readouterr().err
    main(["alerts", "list", "--json"])
    assert [alert["kind"] for alert in json.loads(capsys.readouterr().out)] == ["budget_exceeded"]
    assert main(["budget", "show", "--runs"]) == 0
    assert "adhoc" in capsys.readouterr().out
