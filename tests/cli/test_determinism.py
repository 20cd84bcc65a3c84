"""Nights, baselines and blocks on the command line, from a first night to a block that somebody explains."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from eval_tasks.engine.mock import MockEngine
from eval_tasks.settings import Settings
from eval_tasks.store import open_store
from tests.determinism.conftest import nudged
from tests.planned import register, write_checkpoint

Run = Callable[..., str]
RunJson = Callable[..., Any]


@pytest.fixture
def configured(home: Path, tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path / "step-1")
    home.mkdir()
    document = {
        "environments": [{"name": "one", "engine": "mock"}],
        "determinism": {"suite": "colours-all", "checkpoint": str(checkpoint)},
    }
    (home / "config.yaml").write_text(yaml.safe_dump(document), "utf-8")
    with open_store(Settings()) as store:
        register(store, tmp_path / "benchmarks")


@pytest.mark.usefixtures("configured")
def test_from_a_first_night_to_a_block_that_is_explained(
    run: Run, run_json: RunJson, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run("determinism", "run", "--environment", "one", "--night", "a")
    assert "one, night a: ADOPTED" in first and "adopted by itself" in first
    assert "perturbed plan: 146 items are the same bit for bit" in first
    respond = MockEngine.respond

    def faulty(engine: MockEngine, requests: Any) -> list[Any]:
        return [nudged(q, r) for q, r in zip(requests, respond(engine, requests), strict=True)]

    monkeypatch.setattr(MockEngine, "respond", faulty)
    printed = run("determinism", "run", "--environment", "one", "--night", "b", code=1)
    assert "one, night b: FAILED" in printed and "baseline: 1 of 146 items differ" in printed
    assert "colours c003 token_logprobs[0][0]: " in printed
    (block,) = run_json("blocks", "list")
    assert "evaluation is blocked" not in run("gate", "--environment", "one", code=7)
    shown = run("blocks", "show", block["block_id"][:8])
    assert "colours c003 token_logprobs[0][0]" in shown and "rows were last known to be good at" in shown
    assert "colours c003" in run("determinism", "show") and "open block" in run("determinism", "show")
    refused = run("blocks", "explain", block["block_id"], "--outcome", "baseline kept", "--reason", " ", code=2)
    assert "needs a name and a reason" in refused
    explained = ("blocks", "explain", block["block_id"][:8], "--outcome", "runs suspect", "--reason", "a bad card")
    assert "is explained: runs suspect" in run(*explained, "--by", "ada")
    assert "was explained by 'ada'" in run(*explained, "--by", "bob", code=2)
    assert run_json("blocks", "list") == []
    suspects = run_json("blocks", "show", block["block_id"])["suspects"]
    assert suspects, "the failing night's own runs"
    assert "SUSPECT: run" in run("runs", "show", suspects[0])
    assert "cleared" in run("blocks", "clear", block["block_id"], "--reason", "no number of them is used")
    assert run_json("blocks", "list", "--all")[0]["outcome"] == "runs suspect"
    assert run("gate", "--environment", "one").startswith("open")
    assert [n["status"] for n in run_json("determinism", "show", "--environment", "one")] == ["failed", "adopted"]
    assert run_json("baselines", "list")[0]["status"] == "adopted"
    assert '"adopted"' in run("baselines", "show", "one")
    assert "no candidate to adopt" in run("baselines", "adopt", "one", "--reason", "x", code=2)


@pytest.mark.usefixtures("configured")
def test_bad_input_is_told(run: Run) -> None:
    assert "no live environment" in run("determinism", "run", code=2)
    assert "no environment 'tow'" in run("determinism", "run", "--environment", "tow", code=2)
    assert "no block 'x'" in run("blocks", "show", "x", code=2)
    assert "no environment 'x'" in run("baselines", "show", "x", code=2)
    assert "no run 'x'" in run("determinism", "sentinels", "--run", "x", code=2)
    assert "no sensitivity study 'x'" in run("sensitivity", "show", "x", code=2)


def test_without_a_fixed_suite_it_is_said_that_nothing_watches(run: Run) -> None:
    assert "no fixed suite is configured" in run("determinism", "run", code=2)
    assert "nothing watches the environments" in run("determinism", "show")


def test_a_sensitivity_study_is_run_kept_and_shown(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    with open_store(Settings()) as store:
        register(store, tmp_path / "benchmarks")
        suite = store.catalog.suite("colours-all")
        store.catalog.save_suite(type(suite)(name="few", version="1", tier="health", entries=suite.entries[:1]))
    checkpoint = write_checkpoint(tmp_path / "step-1")
    shown = run("sensitivity", "run", checkpoint, "--suite", "few", "--draws", 1)
    assert "sensitivity of few@1" in shown
    assert "not varied: few_shot_draw: colours: it has no worked examples" in shown
    (study,) = run_json("sensitivity", "list")
    (listed,) = [line for line in run("sensitivity", "list").splitlines() if "few@1" in line]
    assert {s["varied"] for s in study["shifts"]} == {"choice_order", "dtype"}
    study_id = listed.split("│")[1].strip()
    assert run_json("sensitivity", "show", study_id)["shifts"] == study["shifts"]
