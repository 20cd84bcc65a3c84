"""Two graded runs of one checkpoint on the same benchmarks -> how far each score moved, with the error of flips."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from eval_tasks.records import BenchmarkVersion, RerunComparison, RerunDifference, Run
from eval_tasks.scoring import metric_of
from eval_tasks.settings import DeterminismPolicy
from eval_tasks.stats.item_scores import ItemScores, item_scores, metric_rows
from eval_tasks.stats.paired import paired_binary, paired_continuous

if TYPE_CHECKING:
    from eval_tasks.store import Store

_COLUMNS = ["item_id", "metric", "value", "weight", "status", "cluster"]


def rerun(
    store: Store, run_a: Run, run_b: Run, benchmarks: Sequence[BenchmarkVersion], *, source: str, now: str
) -> RerunComparison:
    """Every metric of every benchmark, run B less run A. Both runs have a fingerprint."""
    return RerunComparison(
        env_a=run_a.env_fingerprint or "",
        env_b=run_b.env_fingerprint or "",
        run_a=run_a.run_id,
        run_b=run_b.run_id,
        checkpoint_id=run_b.request.checkpoint_id,
        source=source,
        measured_at=now,
        differences=tuple(d for b in benchmarks for d in _of_benchmark(store, (run_a.run_id, run_b.run_id), b)),
    )


def beyond(difference: RerunDifference, policy: DeterminismPolicy) -> bool:
    """Whether a score moved further than the declared bound."""
    if difference.unit == "fraction":
        return abs(100 * difference.delta) > policy.bound_points
    return abs(difference.delta) > policy.bound_loss


def shown(difference: RerunDifference) -> str:
    """The move in words, points for fractions."""
    if difference.unit == "fraction":
        return f"{difference.benchmark} {difference.metric} {100 * difference.delta:+.2f} points"
    return f"{difference.benchmark} {difference.metric} {difference.delta:+.5f} {difference.unit}"


def _of_benchmark(store: Store, runs: tuple[str, str], benchmark: BenchmarkVersion) -> list[RerunDifference]:
    tables = [store.scores.read(run, benchmark.benchmark_id, columns=_COLUMNS) for run in runs]
    metrics = sorted(set.intersection(*(set(pc.unique(table["metric"]).to_pylist()) for table in tables)))
    found = []
    for metric in metrics:
        info = metric_of(benchmark, metric)
        # In item_id order, as the store has them; an item that counts in one arm only is in neither here.
        a, b = (item_scores(metric_rows(table, metric), info, clustered=False) for table in tables)
        ids = [metric_rows(t, metric)["item_id"].to_numpy() for t in tables]
        a, b = _shared(a, ids[0], b, ids[1])
        if not len(a.values):
            continue
        weights = None
        if a.weights is not None or b.weights is not None:
            ones = np.ones(len(a.values))
            weights = (ones if a.weights is None else a.weights, ones if b.weights is None else b.weights)
        binary = info.binary and weights is None
        paired = paired_binary(b.values, a.values) if binary else paired_continuous(b.values, a.values, None, weights)
        found.append(
            RerunDifference(
                benchmark=benchmark.name,
                metric=metric,
                n=paired.n,
                delta=paired.delta,
                se_flip=paired.se or 0.0,
                unit=info.unit,
            )
        )
    return found


def _shared(a: ItemScores, ids_a: object, b: ItemScores, ids_b: object) -> tuple[ItemScores, ItemScores]:
    """The items that are scored in both, in one order."""
    names_a, names_b = np.asarray(ids_a), np.asarray(ids_b)
    scored = np.intersect1d(names_a[a.scored], names_b[b.scored])
    return a.take(np.isin(names_a, scored)), b.take(np.isin(names_b, scored))
