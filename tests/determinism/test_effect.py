"""How far scores moved between two runs, against sums done by hand."""

from __future__ import annotations

from eval_tasks.determinism.effect import beyond, shown
from eval_tasks.records import RerunDifference
from eval_tasks.settings import DeterminismPolicy
from tests.determinism.conftest import Nights, worse
from tests.planned import N_CHOICE

POLICY = DeterminismPolicy(suite="s", checkpoint="c", bound_points=0.5, bound_loss=0.001)


def test_a_move_is_the_mean_of_the_items_moves_with_the_error_of_flips(nights: Nights) -> None:
    nights.run(1)
    nights.machine, nights.fault = {"driver": "560"}, worse
    night = nights.run(2)
    store = nights.store
    benchmark = next(b for b in store.catalog.benchmarks() if b.name == "colours")
    values = [
        {
            row["item_id"]: row["value"]
            for row in store.scores.read(run, benchmark.benchmark_id, metric="acc").to_pylist()
        }
        for run in (night.baseline_run_id, night.run_id)
    ]
    flips = [values[1][item_id] - values[0][item_id] for item_id in values[0]]
    mean = sum(flips) / N_CHOICE
    variance = sum((flip - mean) ** 2 for flip in flips) / (N_CHOICE - 1)
    (moved,) = (d for d in night.effect if (d.benchmark, d.metric) == ("colours", "acc"))
    assert moved.n == N_CHOICE and sum(map(abs, flips)) > 0
    assert abs(moved.delta - mean) < 1e-12
    assert abs(moved.se_flip - (variance / N_CHOICE) ** 0.5) < 1e-12
    assert all(d.delta == 0 for d in night.effect if d.benchmark != "colours")


def test_the_bound_itself_is_within_the_bound() -> None:
    def moved(delta: float, unit: str) -> RerunDifference:
        return RerunDifference(benchmark="b", metric="m", n=9, delta=delta, se_flip=0.0, unit=unit)

    assert not beyond(moved(0.005, "fraction"), POLICY)
    assert beyond(moved(-0.0051, "fraction"), POLICY)
    assert not beyond(moved(-0.001, "bits/byte"), POLICY)
    assert beyond(moved(0.0011, "bits/byte"), POLICY)
    assert shown(moved(-0.0051, "fraction")) == "b m -0.51 points"
    assert shown(moved(0.0011, "bits/byte")) == "b m +0.00110 bits/byte"
