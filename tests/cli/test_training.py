"""`health` and `runs curve` from the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest

from eval_tasks.aggregate import aggregate
from eval_tasks.cli import main
from eval_tasks.settings import Settings
from eval_tasks.store import open_store
from tests.compare.stored import stored_run
from tests.health.conftest import benchmark, rows


@pytest.fixture
def runs(tmp_path, monkeypatch):
    for name in ("STORE_URI", "CATALOG_URL", "CONFIG"):
        monkeypatch.delenv(f"CHECKPOINT_EVAL_{name}", raising=False)
    monkeypatch.setenv("CHECKPOINT_EVAL_HOME", str(tmp_path / "home"))
    made = []
    with open_store(Settings()) as store:
        text, quiz = benchmark(store, "text", 60), benchmark(store, "quiz", 60, kind="choice")
        store.catalog.save_benchmark(quiz)
        for number, level in ((1, 0.9), (2, 1.4)):
            values = np.random.default_rng(number).normal(level, 0.02, 60)
            run = stored_run(store, number, (text, rows(text, values)))
            store.catalog.update_run(run.run_id, status="closed")
            aggregate(store, run.run_id)
            made.append(run.run_id)
    return made


def test_health_says_what_struck_and_exits_with_1(runs, capsys):
    assert main(["health", runs[0]]) == 0
    assert "nothing could be tested" in capsys.readouterr().out
    assert main(["health", runs[1]]) == 1
    said = capsys.readouterr().out
    assert "Health: 1 alarm: divergence in text" in said
    assert "at most 1 of 100 training runs" in said and "Not detected: a loss that rose by 2% or less" in said
    assert main(["health", runs[1], "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"][0]["alarm"] is True
    assert main(["alerts", "list"]) == 0
    assert "divergence" in capsys.readouterr().out


def test_a_loss_is_drawn_over_steps_and_accuracy_is_not(runs, capsys):
    assert main(["runs", "curve", "tiny", "--benchmark", "text", "--json"]) == 0
    assert [p["step"] for p in json.loads(capsys.readouterr().out)["points"]] == [100, 200]
    assert main(["runs", "curve", "tiny", "--benchmark", "text"]) == 0
    assert "bits per byte" in capsys.readouterr().out
    assert main(["runs", "curve", "tiny", "--benchmark", "quiz"]) == 2
    assert "accuracy is not drawn over steps" in capsys.readouterr().err
