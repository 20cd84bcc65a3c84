"""The catalog's runs of a training run -> its looks: each step once, in order, and which of them one is held against.

A look is a step (`loss_curves.one_per_step`), so that nothing is counted twice, whatever the order in which runs ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from eval_tasks.loss_curves import one_per_step
from eval_tasks.records import BenchmarkVersion, MeasuredNoise, Run
from eval_tasks.scoring import metric_of
from eval_tasks.stats.checkpoint_noise import MIN_LOOKS, WINDOW, CheckpointNoise, checkpoint_noise
from eval_tasks.stats.looks import lags

if TYPE_CHECKING:
    from eval_tasks.store import SeriesPoint, Store


NO_TRAINING_RUN = "adhoc"
"""The name that stands for none: checkpoints that were evaluated under it have nothing to do with each other."""


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


def noise_of(earlier: Sequence[SeriesPoint], items: float) -> CheckpointNoise | None:
    """The checkpoints' wobble over the last looks; `items`: the variance that moving items alone give a score."""
    recent = earlier[-WINDOW:]
    steps = np.array([point.step for point in recent], dtype=np.float64)
    scores = np.array([point.measurement.score for point in recent], dtype=np.float64)
    return checkpoint_noise(steps, scores, items=items)


def noise_record(
    store: Store, benchmark: BenchmarkVersion, earlier: Sequence[SeriesPoint], noise: CheckpointNoise | None
) -> MeasuredNoise:
    """The noise as a report shows it, with the seed prior of the study that was recorded last."""
    studied = [(study, study.of(benchmark.name, benchmark.primary_metric)) for study in store.catalog.seed_studies()]
    known = [(study, found) for study, found in studied if found is not None]
    study, found = max(known, key=lambda pair: pair[0].recorded_at, default=(None, None))
    return MeasuredNoise(
        benchmark=benchmark.name,
        metric=benchmark.primary_metric,
        unit=metric_of(benchmark, benchmark.primary_metric).unit,
        sd=None if noise is None else noise.common**0.5,
        n_looks=min(len(earlier), WINDOW) if noise is not None else min(len(earlier), MIN_LOOKS - 1),
        last_step=earlier[-1].step if earlier else None,
        seed_sd=None if found is None else max(0.0, found.s2_raw - found.flip_variance) ** 0.5,
        seed_study="" if study is None else study.reference,
    )
