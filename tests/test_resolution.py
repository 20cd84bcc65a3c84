"""What a comparison could find, from the catalog's past."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eval_tasks.compare import compare
from eval_tasks.records import BenchmarkVersion, Scale, SeedStudy, StudiedBenchmark, Suite, SuiteEntry
from eval_tasks.resolution import UNKNOWN_SPREAD, Asked, run_resolution, suite_resolution
from eval_tasks.stats.planning import seeds_mde
from eval_tasks.stats.power import mde_from_se, paired_mde
from eval_tasks.store import Store
from tests.compare.stored import scores_of, stored_run
from tests.store.samples import benchmark

BENCH = benchmark(name="bench", n_items=2_000)
A, B = [1.0] * 60 + [0.0] * 40, [0.0] * 20 + [1.0] * 40 + [0.0] * 40


def two_runs(store: Store, bench: BenchmarkVersion, number: int = 1, clusters: list[str] | None = None):
    runs = []
    for side, values in ((0, A), (1, B)):
        rows = scores_of(bench, values, bench.primary_metric)
        if clusters:
            rows = [replace(row, cluster=c) for row, c in zip(rows, clusters, strict=True)]
        runs.append(stored_run(store, number + side, (bench, rows)))
    return runs


def suite(store: Store, *benchmarks: BenchmarkVersion) -> Suite:
    entries = tuple(SuiteEntry(benchmark=b.name, version=b.version, benchmark_id=b.benchmark_id) for b in benchmarks)
    for b in benchmarks:
        store.catalog.save_benchmark(b)
    return store.catalog.save_suite(Suite(name="s", version="1", tier="selection", entries=entries))


def test_without_a_past_the_discordance_is_the_assumed_one(store: Store) -> None:
    (line,) = suite_resolution(store, [suite(store, BENCH)], Asked(assumed=0.05, target=0.01))
    assert (line.basis, line.discordance, line.n, line.tier) == ("assumed", 0.05, 2_000, "selection")
    assert line.mde == pytest.approx(0.0140, abs=5e-5) and line.n_needed == 3_923 and line.resolves_target is False
    assert (line.seeds_mde, line.device_seconds) == (None, None)


def test_past_comparisons_are_pooled_and_each_pair_of_runs_counts_once(store: Store) -> None:
    first, second = two_runs(store, BENCH)
    for _ in range(2):
        compare(store, first.run_id, second.run_id)
    compare(store, first.run_id, second.run_id, alpha=0.1)
    third, fourth = two_runs(store, BENCH, number=3)
    compare(store, third.run_id, fourth.run_id)
    compare(store, fourth.run_id, third.run_id)
    (line,) = suite_resolution(store, [suite(store, BENCH)], Asked())
    assert (line.basis, line.discordance) == ("observed in 2 past comparisons, 200 pairs", 0.2)
    assert line.mde == pytest.approx(paired_mde(2_000, 0.2))


def test_clusters_take_the_error_of_past_comparisons_in_place_of_their_flips(store: Store) -> None:
    bench = benchmark(name="passages", n_items=400, cluster_key="passage", items_digest="c" * 64)
    whole = suite(store, bench)
    (before,) = suite_resolution(store, [whole], Asked())
    assert before.basis == "assumed, clusters ignored"
    first, second = two_runs(store, bench, clusters=[f"p{k // 10}" for k in range(100)])
    test = compare(store, first.run_id, second.run_id).tests[0]
    (line,) = suite_resolution(store, [whole], Asked())
    assert line.discordance is None and line.basis == "observed in 1 past comparison, 100 pairs"
    assert line.mde == pytest.approx(mde_from_se(test.se * (100 / 400) ** 0.5, 399))
    assert line.mde > 1.5 * paired_mde(400, 0.2)


def test_a_seed_study_says_how_many_seeds_a_target_takes(store: Store) -> None:
    studied = StudiedBenchmark(
        benchmark="bench", metric=BENCH.primary_metric, n=2_000, n_seeds=5, s2_raw=0.006**2, psi_seed=0.05
    )
    study = SeedStudy(
        name="base",
        origin="imported",
        source="a paper",
        scale=Scale(parameters=7_000_000_000),
        benchmarks=(studied,),
        measured_at="2026-01-01",
        recorded_at="2026-02-01T00:00:00+00:00",
    )
    store.catalog.save_seed_study(study)
    (line,) = suite_resolution(store, [suite(store, BENCH)], Asked(target=0.01))
    assert (line.seeds, line.seed_sd, line.seed_study) == (3, pytest.approx(0.006), "base@1")
    assert line.seeds_mde == pytest.approx(seeds_mde(3, 0.006)) and line.seeds_needed == 7


def test_a_run_has_lines_only_where_something_was_compared(store: Store) -> None:
    first, second = two_runs(store, BENCH)
    assert run_resolution(store, first, [(BENCH, 100)]) == []
    compare(store, first.run_id, second.run_id)
    (line,) = run_resolution(store, first, [(BENCH, 100), (benchmark(name="other"), 50)])
    assert (line.n, line.discordance) == (100, 0.2) and line.mde == pytest.approx(paired_mde(100, 0.2))
    assert run_resolution(store, first, [(BENCH, 0)]) == []


def test_a_loss_without_a_past_has_no_resolution(store: Store) -> None:
    loss = benchmark(
        name="text", kind="loss", scorer=replace(BENCH.scorer, name="loss"), primary_metric="bits_per_byte"
    )
    (line,) = suite_resolution(store, [suite(store, loss)], Asked(target=0.01))
    assert (line.mde, line.basis, line.resolves_target) == (None, UNKNOWN_SPREAD, None)
