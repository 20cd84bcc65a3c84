"""Score rows of a run -> measurements: each metric's score with n, se and ci95. Knows no engine and no guard.

Plain methods by default: Wilson for right-or-wrong items, t for continuous ones, a ratio for pooled metrics, CR1 where
the benchmark declares a cluster key, errors within strata where it declares a stratum key and no clusters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from eval_tasks.abilities import Weights, ability_of
from eval_tasks.contamination import NEVER_CHECKED
from eval_tasks.errors import DataError
from eval_tasks.records import Ability, BenchmarkVersion, Measurement
from eval_tasks.records.engine import MOCK_MARK
from eval_tasks.scoring import metric_of
from eval_tasks.stats.companion import companion_of
from eval_tasks.stats.item_scores import MetricTraits, item_scores, measured, metric_rows
from eval_tasks.stats.within_item import within_item

if TYPE_CHECKING:
    from eval_tasks.records import Run
    from eval_tasks.store import Store

_COLUMNS = ["item_id", "metric", "value", "weight", "status", "cluster", "stratum"]


def aggregate(store: Store, run_id: str) -> list[Measurement]:
    """Measure every benchmark of a run, in suite order, on its latest score set, and keep the result in the catalog.

    A number that comes out as it was keeps what later steps said of it: another evaluation may be comparing this run
    just now, and must not find a quarantine lifted until guard has run again. Raises DataError when a benchmark of the
    run has no scores.
    """
    run = store.catalog.run(run_id)
    run.require_evaluation()
    planned = _planned_items(store, run)
    weights = Weights.standing(store, run.request.benchmark_ids)
    abilities: dict[tuple[str, str], Ability] = {}
    measurements: list[Measurement] = []
    for benchmark_id in run.request.benchmark_ids:
        benchmark = store.catalog.benchmark_by_id(benchmark_id)
        graders = store.scores.standing(run_id, benchmark_id)
        if not graders:
            raise DataError(f"run {run_id} has no scores of {benchmark.name!r}; grade it first")
        columns = [*_COLUMNS, "sample_values"] if benchmark.sampling else _COLUMNS
        scores = store.scores.read(run_id, benchmark_id, grader=graders[-1], columns=columns)
        flags = store.responses.read(run_id, benchmark_id, columns=["prompt_truncated", "output_truncated"])
        metrics = set(pc.unique(scores["metric"]).to_pylist()) | {benchmark.primary_metric}
        measurements += aggregate_scores(
            run_id,
            benchmark,
            scores,
            n_attempted=planned.get(benchmark_id, pc.count_distinct(scores["item_id"]).as_py()),
            prompt_truncated=pc.sum(flags["prompt_truncated"]).as_py() or 0,
            output_truncated=pc.sum(flags["output_truncated"]).as_py() or 0,
            metric_infos={metric: metric_of(benchmark, metric) for metric in sorted(metrics)},
            grader=graders[-1],
            contamination=None,
            contamination_note=NEVER_CHECKED,
        )
        abilities |= _abilities(weights, run, benchmark, scores, graders[-1])

    if run.origin == "mock":
        measurements = [replace(m, caveat=MOCK_MARK) for m in measurements]

    def with_what_is_known(stored: list[Measurement]) -> list[Measurement]:
        earlier = {_bare(m): m for m in stored}
        known = [earlier.get(m, m) for m in measurements]
        return [replace(m, ability=abilities.get((m.benchmark_id, m.metric))) for m in known]

    return store.catalog.change_measurements(run_id, with_what_is_known)


def _bare(measurement: Measurement) -> Measurement:
    """A measurement as its scores make it: without ability, and without what join_contamination and guard add."""
    return replace(
        measurement,
        contamination=NEVER_CHECKED,
        companion=None,
        quarantined=False,
        quarantine_reason="",
        ability=None,
    )


def _abilities(
    weights: Weights, run: Run, benchmark: BenchmarkVersion, scores: pa.Table, grader: str
) -> dict[tuple[str, str], Ability]:
    """(benchmark_id, metric) -> ability, for the metrics that were calibrated."""
    found = {}
    for metric in pc.unique(scores["metric"]).to_pylist():
        key = (benchmark.benchmark_id, metric, grader)
        if not weights.know(*key):
            continue
        rows = metric_rows(scores, metric)
        items = item_scores(rows, metric_of(benchmark, metric), clustered=benchmark.cluster_key is not None)
        ids = rows["item_id"].combine_chunks().filter(pa.array(items.scored))
        ability = ability_of(weights, run, key, ids, items.values, items.clusters)
        if ability is not None:
            found[benchmark.benchmark_id, metric] = ability
    return found


def aggregate_scores(
    run_id: str,
    benchmark: BenchmarkVersion,
    scores: pa.Table,
    *,
    n_attempted: int,
    prompt_truncated: int,
    output_truncated: int,
    metric_infos: Mapping[str, MetricTraits],
    grader: str,
    contamination: Mapping[str, str] | None,
    contamination_note: str,
) -> list[Measurement]:
    """One measurement per metric of `scores`, the primary one first, the others by name.

    scores: columns item_id, metric, value, weight, status, cluster, stratum (and sample_values where the benchmark is
    sampled); one row per item and metric. n_attempted: items the plan asked for; those without a row are missing.
    contamination: item_id -> status, None when never checked.
    Raises DataError for two scores of one item, a value that is no finite number, or more items than were attempted.
    """
    found = set(pc.unique(scores["metric"]).to_pylist())
    if unknown := sorted(found - set(metric_infos)):
        raise DataError(f"{benchmark.name}: scores of {unknown[0]!r}, which scorer {benchmark.scorer.name!r} has not")
    metrics = sorted(found | {benchmark.primary_metric}, key=lambda m: (m != benchmark.primary_metric, m))
    clustered, stratified = benchmark.cluster_key is not None, benchmark.stratum_key is not None
    measurements = []
    for metric in metrics:
        info = metric_infos[metric]
        rows = metric_rows(scores, metric)
        if rows.num_rows > n_attempted:
            raise DataError(f"{benchmark.name}, {metric}: {rows.num_rows} items scored, {n_attempted} were attempted")
        items = item_scores(rows, info, clustered=clustered, stratified=stratified)
        n_excluded = int(items.excluded.sum())
        n_missing = n_attempted - len(items.values) - n_excluded
        result = measured(items, info, n_missing=n_missing)
        within = None
        if benchmark.sampling is not None:
            within = within_item(rows, info, n_samples=benchmark.sampling.samples)
        companion = None
        if contamination is not None:
            companion = companion_of(
                scores, contamination, metric=metric, info=info, clustered=clustered, stratified=stratified
            )
        measurements.append(
            Measurement(
                run_id=run_id,
                benchmark_id=benchmark.benchmark_id,
                benchmark=benchmark.name,
                version=benchmark.version,
                metric=metric,
                primary=metric == benchmark.primary_metric,
                score=result.score,
                n=result.n,
                n_attempted=n_attempted,
                se=result.se,
                ci95=result.ci,
                ci95_method=result.method,
                n_invalid=int(items.invalid.sum()),
                n_missing=n_missing,
                n_excluded=n_excluded,
                n_prompt_truncated=prompt_truncated,
                n_output_truncated=output_truncated,
                grader=grader,
                higher_is_better=info.higher_is_better,
                unit=info.unit,
                contamination=contamination_note,
                companion=companion,
                within_item=within,
            )
        )
    return measurements


def _planned_items(store: Store, run: Run) -> dict[str, int]:
    """Items planned per benchmark; empty for a run without a plan (an imported one)."""
    planned: dict[str, int] = {}
    if run.plan_blob is None:
        return planned
    for batch in store.blobs.get_batches(store.plan(run.plan_blob).batches_blob):
        planned[batch.benchmark_id] = planned.get(batch.benchmark_id, 0) + len(batch.item_ids)
    return planned
