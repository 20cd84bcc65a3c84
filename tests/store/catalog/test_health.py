"""A training run over its steps: series in step order, looks by step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eval_tasks.errors import UserError
from eval_tasks.records import HealthLook, Measurement
from eval_tasks.store import Store
from tests.store import samples


def measured(store: Store, number: int, step: int, score: float, **changes: object) -> str:
    run = store.catalog.create_run(replace(samples.run(number, step=step, status="closed"), **changes))
    m = Measurement(
        run_id=run.run_id,
        benchmark_id=samples.BENCHMARK_ID,
        benchmark="web",
        version="1",
        metric="bits_per_byte",
        primary=True,
        score=score,
        n=2,
        n_attempted=2,
        se=0.1,
        ci95=(0.0, 2.0),
        ci95_method="mean",
    )
    store.catalog.save_measurements(run.run_id, [m, replace(m, metric="bits_per_token")])
    return run.run_id


def look(run_id: str, step: int) -> HealthLook:
    return HealthLook(
        run_id=run_id, training_run="tiny", step=step, look=1, alpha_per_run=0.01, horizon=1440, findings=()
    )


def test_a_series_is_by_step_and_only_of_closed_runs(store: Store) -> None:
    late, early = measured(store, 1, 1_000, 0.8), measured(store, 2, 200, 0.9)
    measured(store, 3, 300, 0.7, status="running")
    measured(store, 4, 400, 0.7, training_run="other")
    measured(store, 5, 500, 0.7, tier="release")
    found = store.catalog.series("tiny", "web", "bits_per_byte", tier="health", suite="health")
    assert [(p.step, p.run_id, p.measurement.score, p.suite) for p in found] == [
        (200, early, 0.9, "health"),
        (1_000, late, 0.8, "health"),
    ]
    assert len(store.catalog.series("tiny", "web", "bits_per_byte")) == 3
    assert store.catalog.series("tiny", "web", "acc") == []


def test_a_look_is_kept_replaced_and_found_by_step(store: Store) -> None:
    first, second = measured(store, 1, 1_000, 0.8), measured(store, 2, 200, 0.9)
    for run_id, step in ((first, 1_000), (second, 200)):
        store.catalog.save_health(look(run_id, step))
    store.catalog.save_health(replace(look(second, 200), look=7))
    assert [(found.step, found.look) for found in store.catalog.health_looks("tiny")] == [(200, 7), (1_000, 1)]
    before = store.catalog.health_before("tiny", 1_000)
    assert before is not None and before.run_id == second
    assert store.catalog.health_before("tiny", 200) is None
    assert store.catalog.health("0" * 32) is None


def test_a_look_at_no_run_is_refused(store: Store) -> None:
    with pytest.raises(UserError, match="no run"):
        store.catalog.save_health(look("0" * 32, 1))
