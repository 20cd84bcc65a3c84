"""The flow, one command after the other on a tiny model, and `evaluate`, which must give the same rows."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from eval_tasks.cli import main, shard
from eval_tasks.run import run_shard
from eval_tasks.settings import Settings
from eval_tasks.store import open_store
from tests import planned
from tests.planned import write_checkpoint, write_suite

Run = Callable[..., str]
RunJson = Callable[..., Any]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint") / "step-7")


@pytest.fixture
def suite(run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small suite, registered, and a configuration that cuts it into several shards."""
    for name, n in (("N_CHOICE", 40), ("N_TEXT", 6), ("N_GENERATED", 4)):
        monkeypatch.setattr(planned, name, n)
    suite_file = write_suite(tmp_path / "benchmarks")
    run(
        "benchmarks",
        "register",
        *(suite_file.with_name(f"{n}.yaml") for n in ("colours", "colour-text", "colour-sums")),
    )
    run("suites", "register", suite_file)
    (home / "config.yaml").write_text(yaml.safe_dump({"limits": {"shard_cost_tokens": 2000}}))


@pytest.fixture
def keep_signals() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def rows_digest(run_id: str) -> str:
    with open_store(Settings()) as store:
        return str(store.responses.run_rows_digest(run_id))


@pytest.mark.usefixtures("suite")
def test_a_seed_asks_as_the_flow_does(run_json: RunJson, checkpoint: Path) -> None:
    checkpoint_id = run_json("resolve", checkpoint)["checkpoint_id"]
    plans = [run_json("plan", checkpoint_id, "--suite", "colours-all", "--seed", seed) for seed in (0, 5)]
    with open_store(Settings()) as store:
        plain, seeded = (store.catalog.run(made["run_id"]).request for made in plans)
    assert seeded == replace(plain, seed=5)  # one request by either way is one run


@pytest.mark.usefixtures("suite", "keep_signals")
def test_each_step_runs_alone_and_evaluate_gives_the_same_rows(
    run: Run, run_json: RunJson, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("gate").startswith("open: ")
    resolved = run_json("resolve", checkpoint, "--training-run", "tiny")
    assert resolved["step"] == 7
    plan = run_json("plan", resolved["checkpoint_id"], "--suite", "colours-all")
    run_id, shards = plan["run_id"], [s["shard"] for s in plan["shards"]]
    assert len(shards) > 2
    assert "incomplete: " in run("grade", run_id, code=4)
    assert "grade it first" in run("aggregate", run_id, code=5)
    assert "not closed" in run("publish", run_id, code=5)
    reports = [run_json("run-shard", "--plan", plan["plan_uri"], "--shard", s) for s in shards]
    assert sum(report["n_computed"] for report in reports) == 50
    assert "0 of " in run("run-shard", "--plan", plan["plan_uri"], "--shard", 0)
    assert "colours: 40 rows by choice@1+" in run("grade", run_id[:10])
    measured = run_json("aggregate", run_id)
    assert {m["benchmark"] for m in measured} == {"colours", "colour-text", "colour-sums"}
    assert "never checked: colours, colour-text, colour-sums" in run("join-contamination", run_id)
    guarded = run_json("guard", run_id)
    assert guarded["passed"] and guarded["checks"]["row_count"] == "passed"
    assert guarded["contract"]["by"].startswith("great_expectations")
    assert run_json("guard", run_id, "--stored") == guarded
    assert run_json("compare", run_id, run_id)["verdict"] is None
    report = tmp_path / "report.html"
    assert run("publish", run_id, "--out", report).strip() == str(report)
    shown = run("runs", "show", run_id[:8])
    assert "html report " in shown and "closed" in shown
    first_row = json.loads(run("runs", "items", run_id, "--benchmark", "colours", "--limit", 1))
    assert (first_row["item_id"], len(first_row["logprobs"])) == ("c000", 4)
    assert "close: 'colours'" in run("runs", "items", run_id, "--benchmark", "colors", code=2)
    assert [r["run_id"] for r in run_json("runs", "list", "--training-run", "tiny")] == [run_id]
    groups = run_json("runs", "breakdown", run_id, "--benchmark", "colours")["groups"]
    assert [(g["group"], g["n"]) for g in groups] == [("even", 20), ("odd", 20)]
    shown = run("runs", "breakdown", run_id, "--benchmark", "colours")
    assert "colours, acc by stratum" in shown and "macro average over groups" in shown
    step_by_step = rows_digest(run_id)

    with open_store(Settings()) as store:
        store.catalog.open_block(store.catalog.run(run_id).env_fingerprint, "rows differ", planned.NOW)
    assert "rows differ" in run("gate", code=7)
    assert "rows differ" in run("evaluate", checkpoint, "--suite", "colours-all", code=7)

    monkeypatch.setenv("CHECKPOINT_EVAL_HOME", str(tmp_path / "other"))
    suite_file = tmp_path / "benchmarks" / "colours-all.yaml"
    files = [suite_file.with_name(f"{name}.yaml") for name in ("colours", "colour-text", "colour-sums")]
    run("benchmarks", "register", *files)
    run("suites", "register", suite_file)
    printed = run("evaluate", checkpoint, "--suite", "colours-all@1", "--training-run", "tiny")
    found = re.search(r"^run (\w+)$", printed, re.MULTILINE)
    assert found is not None and found.group(1) == run_id
    assert rows_digest(run_id) == step_by_step


@pytest.mark.usefixtures("suite", "keep_signals")
def test_sigterm_keeps_finished_batches_and_says_why_the_pod_ended(
    run: Run, run_json: RunJson, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kubernetes ends a pod with SIGTERM; the flow retries what ended with 4 and shows the termination message."""
    resolved = run_json("resolve", checkpoint)
    plan = run_json("plan", resolved["checkpoint_id"], "--suite", "colours-all")
    several = next(s for s in plan["shards"] if s["n_batches"] > 1)["shard"]
    message = tmp_path / "termination-log"
    monkeypatch.setenv("TERMINATION_MESSAGE_PATH", str(message))

    def disturbed(*arguments: Any, progress: Any, **keywords: Any) -> Any:
        def note(done: int, total: int) -> None:
            progress(done, total)
            if 0 < done < total:
                signal.raise_signal(signal.SIGTERM)

        return run_shard(*arguments, progress=note, **keywords)

    monkeypatch.setattr(shard, "run_shard", disturbed)
    arguments = ("run-shard", "--plan", plan["plan_uri"], "--shard", several)
    said = run(*arguments, code=4)
    assert "finished ones are kept" in said
    assert message.read_text("utf-8").startswith("InterruptedShardError: stopped with ")
    monkeypatch.setattr(shard, "run_shard", run_shard)
    again = run_json(*arguments)
    assert 0 < again["n_computed"] < again["n_items"]


@pytest.mark.usefixtures("suite")
def test_unknown_names_show_the_close_ones(run: Run, run_json: RunJson, checkpoint: Path) -> None:
    resolved = run_json("resolve", checkpoint)["checkpoint_id"]
    assert "close: 'colours-all'" in run("plan", resolved, "--suite", "colour-all", code=2)
    assert "no environment 'locla' in the configuration; close: 'local'" in run(
        "plan", resolved, "--suite", "colours-all", "--environment", "locla", code=2
    )
    assert "close: 'colours'" in run("benchmarks", "show", "colour", code=2)
    assert "no run 'nothing'" in run("grade", "nothing", code=2)
    assert "`plan` prints the URI" in run("run-shard", "--plan", "0" * 64, "--shard", 0, code=2)


def test_a_checkpoint_that_is_not_one_is_bad_input(run: Run, tmp_path: Path) -> None:
    (tmp_path / "step-1").mkdir()
    assert str(tmp_path / "step-1") in run("resolve", tmp_path / "step-1", code=2)


def test_a_report_that_cannot_be_written_is_refused_before_the_work(run: Run, checkpoint: Path, tmp_path: Path) -> None:
    out = tmp_path / "absent" / "report.html"
    assert "cannot be written" in run("evaluate", checkpoint, "--suite", "s", "--out", out, code=2)


def test_the_reason_is_left_only_where_kubernetes_looks_for_it(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep_signals: None
) -> None:
    monkeypatch.setenv("TERMINATION_MESSAGE_PATH", str(tmp_path / "absent" / "log"))
    assert main(["run-shard", "--plan", "0" * 64, "--shard", "0"]) == 2
    assert not (tmp_path / "absent").exists()
