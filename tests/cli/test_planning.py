"""`power`: plans from counts and from suites with their past."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.compare import compare
from eval_tasks.records import PlannedShard, Suite, SuiteEntry
from eval_tasks.settings import Settings
from eval_tasks.stats.power import paired_mde
from eval_tasks.store import open_store
from tests.compare.stored import scores_of, stored_run
from tests.store import samples

Run = Callable[..., str]
RunJson = Callable[..., Any]
SHARD = PlannedShard(shard=0, group="logprob", n_batches=1, n_items=10, cost_tokens=100)


def test_counts_need_no_store(run: Run, home: Path) -> None:
    said = run("power", "--items", 2000, "--items", 10000, "--discordance", 0.05, "--target-points", 1)
    assert "1.40 points" in said and "0.63 points" in said and "3,923" in said
    assert not home.exists()


def test_cost_and_seeds(run: Run, run_json: RunJson) -> None:
    asked = ("power", "--items", 2000, "--discordance", 0.05, "--target-points", 1, "--seed-sd-points", 0.6)
    found = run_json(*asked, "--usd-per-1000-items", 0.5)
    (row,) = found["checkpoints"]
    assert (row["usd"], row["usd_needed"], row["resolves_target"]) == (2.0, pytest.approx(3.923), False)
    assert found["recipes"]["mde"] == pytest.approx(0.0177, abs=5e-5) and found["recipes"]["seeds_needed"] == 7
    assert "3 seeds of each show 1.77 points; 1 points take 7" in run(*asked)


def test_a_suite_with_a_past_comparison(run_json: RunJson, home: Path) -> None:
    bench = samples.benchmark()
    with open_store(Settings()) as store:
        a = [1.0] * 60 + [0.0] * 40
        b = [0.0] * 20 + [1.0] * 40 + [0.0] * 40
        first = stored_run(store, 1, (bench, scores_of(bench, a, bench.primary_metric)))
        second = stored_run(store, 2, (bench, scores_of(bench, b, bench.primary_metric)))
        entry = SuiteEntry(benchmark=bench.name, version=bench.version, benchmark_id=bench.benchmark_id)
        store.catalog.save_suite(Suite(name="past", version="1", tier="selection", entries=(entry,)))
        (before,) = run_json("power", "past@1", "--discordance", 0.05)["checkpoints"]
        compare(store, first.run_id, second.run_id)
    (after,) = run_json("power", "past")["checkpoints"]
    assert (before["basis"], before["discordance"]) == ("assumed", 0.05)
    assert after["basis"] == "observed in 1 past comparison, 100 pairs" and after["discordance"] == 0.2
    assert after["mde"] == pytest.approx(paired_mde(after["n"], 0.2)) and after["tier"] == "selection"


def test_a_price_by_the_hour_needs_past_runs_of_the_suite(run: Run, run_json: RunJson, home: Path) -> None:
    bench = samples.benchmark(n_items=4_000)
    with open_store(Settings()) as store:
        scored = (bench, scores_of(bench, [1.0] * 10, bench.primary_metric))
        done = stored_run(store, 1, scored, status="closed")
        store.catalog.save_shards(done.run_id, [SHARD])
        store.catalog.record_shard(done.run_id, 0, status="done", n_items=SHARD.n_items, seconds=3.6)
        entry = SuiteEntry(benchmark=bench.name, version=bench.version, benchmark_id=bench.benchmark_id)
        store.catalog.save_suite(Suite(name=done.request.suite, version="9", tier="selection", entries=(entry,)))
    asked = ("power", done.request.suite, "--usd-per-device-hour", 2.5, "--target-points", 1)
    (row,) = run_json(*asked)["checkpoints"]
    seconds = 4_000 * 3.6 / SHARD.n_items
    assert row["device_seconds"] == pytest.approx(seconds)
    assert row["usd"] == pytest.approx(2 * seconds / 3600 * 2.5)
    assert row["usd_needed"] == pytest.approx(row["usd"] * row["n_needed"] / 4_000)
    assert f"{done.request.suite}@9 selection: cannot: {bench.name}" in run(*asked)


def test_bad_plans_are_named(run: Run) -> None:
    assert "no suite is registered" in run("power", code=2)
    assert "exclude each other" in run("power", "x", "--items", 5, code=2)
    assert "discordance 0" in run("power", "--items", 5, "--discordance", 0, code=2)
    assert "target" in run("power", "--items", 5, "--target-points", -1, code=2)
    assert "nothere" in run("power", "nothere", code=2)
    assert "two prices of one thing" in run("power", "x", "--usd-per-device-hour", 2, "--usd-per-1000-items", 1, code=2)
    assert "needs the pace" in run("power", "--items", 5, "--usd-per-device-hour", 2, code=2)
