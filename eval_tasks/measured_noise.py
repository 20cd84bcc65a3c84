"""Checkpoint-to-checkpoint noise of a training run, from its stored measurements, beside the seed prior."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from eval_tasks.records import BenchmarkVersion, MeasuredNoise
from eval_tasks.scoring import metric_of
from eval_tasks.stats.checkpoint_noise import MIN_LOOKS, WINDOW, CheckpointNoise, checkpoint_noise

if TYPE_CHECKING:
    from eval_tasks.store import SeriesPoint, Store


def noise_of(series: Sequence[SeriesPoint], items: float) -> CheckpointNoise | None:
    """The checkpoints' wobble over the last looks; `items`: the variance that moving items alone give a score."""
    recent = series[-WINDOW:]
    steps = np.array([point.step for point in recent], dtype=np.float64)
    scores = np.array([point.measurement.score for point in recent], dtype=np.float64)
    return checkpoint_noise(steps, scores, items=items)


def noise_record(
    store: Store, benchmark: BenchmarkVersion, series: Sequence[SeriesPoint], noise: CheckpointNoise | None
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
        n_looks=min(len(series), WINDOW) if noise is not None else min(len(series), MIN_LOOKS - 1),
        last_step=series[-1].step if series else None,
        seed_sd=None if found is None else max(0.0, found.s2_raw - found.flip_variance) ** 0.5,
        seed_study="" if study is None else study.reference,
    )
