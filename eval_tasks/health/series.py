"""The catalog's runs of a training run -> its looks: each step once, in order, and which of them one is held against.

A look is a step (`loss_curves.one_per_step`), so that nothing is counted twice, whatever the order in which runs ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from eval_tasks.loss_curves import one_per_step
from eval_tasks.records import NO_TRAINING_RUN, BenchmarkVersion, Run
from eval_tasks.stats.looks import lags

if TYPE_CHECKING:
    from eval_tasks.store import SeriesPoint, Store


def earlier_looks(store: Store, run: Run, benchmark: BenchmarkVersion) -> list[SeriesPoint]:
    """The primary metric of a benchmark at each lower step, by step; quarantined numbers and empty ones left out."""
    if run.training_run == NO_TRAINING_RUN:
        return []
    series = store.catalog.series(
        run.training_run, benchmark.name, benchmark.primary_metric, tier=run.tier, suite=run.request.suite
    )
    usable = [
        point
        for point in series
        if point.step < run.step
        and point.measurement.benchmark_id == benchmark.benchmark_id
        and point.measurement.score is not None
        and not point.measurement.quarantined
    ]
    return one_per_step(usable)


def held_against(earlier: Sequence[SeriesPoint]) -> list[SeriesPoint]:
    """The looks 1, 2, 4 ... back."""
    return [earlier[-lag] for lag in lags(len(earlier))]
