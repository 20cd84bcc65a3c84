"""The held-out loss of a training run over its steps, from the catalog. Accuracy is not drawn over steps, and says why.

A look is a step: a checkpoint that was evaluated again is the same look, an overwritten step counts by its newest
content.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from eval_tasks.errors import UserError, did_you_mean
from eval_tasks.records import BenchmarkVersion, CurvePoint, LossCurve
from eval_tasks.scoring import metric_of, metrics_of

if TYPE_CHECKING:
    from eval_tasks.store import SeriesPoint, Store

NO_ACCURACY_CURVE = (
    "accuracy is not drawn over steps: between neighbouring checkpoints it moves by sampling noise, and what looks "
    "like progress in such a curve is mostly that; a held-out loss can be drawn, and two checkpoints are compared by "
    "`compare`"
)


def loss_curve(
    store: Store,
    training_run: str,
    benchmark: BenchmarkVersion,
    *,
    metric: str | None = None,
    tier: str | None = None,
    suite: str | None = None,
    up_to_step: int | None = None,
) -> LossCurve:
    """One point per step with its interval; quarantined numbers are left out. `metric` None: the primary one.

    Raises UserError for a metric that is no loss, and for one that the benchmark has not.
    """
    metric = metric or benchmark.primary_metric
    known = metrics_of(benchmark.scorer.name, benchmark.sampling)
    if metric not in known:
        raise UserError(f"benchmark {benchmark.name!r} has no metric {metric!r}; {did_you_mean(metric, known)}")
    if benchmark.kind != "loss":
        raise UserError(f"{benchmark.name} {metric}: {NO_ACCURACY_CURVE}")
    series = store.catalog.series(training_run, benchmark.name, metric, tier=tier, suite=suite)
    points = [
        CurvePoint(step=p.step, run_id=p.run_id, score=p.measurement.score, ci95=p.measurement.ci95)
        for p in one_per_step([p for p in series if _usable(p, benchmark)])
        if p.measurement.score is not None and (up_to_step is None or p.step <= up_to_step)
    ]
    return LossCurve(
        training_run=training_run,
        benchmark=benchmark.name,
        metric=metric,
        unit=metric_of(benchmark, metric).unit,
        points=tuple(points),
    )


def one_per_step(points: Sequence[SeriesPoint]) -> list[SeriesPoint]:
    """Of each step the first run of its newest checkpoint; `points` are by step, then as registered."""
    chosen: dict[int, SeriesPoint] = {}
    for point in points:
        if point.step not in chosen or chosen[point.step].checkpoint_id != point.checkpoint_id:
            chosen[point.step] = point
    return list(chosen.values())


def _usable(point: SeriesPoint, benchmark: BenchmarkVersion) -> bool:
    m = point.measurement
    return m.benchmark_id == benchmark.benchmark_id and m.score is not None and not m.quarantined
