"""A table of scores of one metric -> arrays: which items count, their values, weights and cluster codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eval_tasks.errors import DataError
from eval_tasks.stats.influence import FloatArray, IntArray
from eval_tasks.stats.intervals import Estimate, Interval, estimate, widen_for_missing

BoolArray = npt.NDArray[np.bool_]


class MetricTraits(Protocol):
    """What has to be known of a metric: `eval_tasks.scoring.MetricInfo` has it.

    `binary`: every value is 0 or 1. `summary`: ``mean`` over items, or ``pooled`` by the items' weights.
    """

    @property
    def higher_is_better(self) -> bool:
        """Whether a larger value is the better one."""

    @property
    def unit(self) -> str:
        """``fraction``, or what the values are counted in."""

    @property
    def binary(self) -> bool:
        """Whether every item's value is 0 or 1."""

    @property
    def summary(self) -> str:
        """``mean`` or ``pooled``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemScores:
    """Scored items of one metric. `scored`, `excluded`, `invalid`: one flag per row of the table, shape (rows,).

    values, weights, clusters, strata: one entry per scored row. weights is None unless the metric is pooled and they
    vary; clusters and strata are None when the benchmark declares none.
    """

    scored: BoolArray
    excluded: BoolArray
    invalid: BoolArray
    values: FloatArray
    weights: FloatArray | None
    clusters: IntArray | None
    strata: IntArray | None = None

    @property
    def n_missing(self) -> int:
        """Rows that should have a score and have none: lost, or invalid under a metric that gives those no value."""
        return int(np.count_nonzero(~self.scored & ~self.excluded))

    def take(self, rows: BoolArray) -> ItemScores:
        """The items of a subset of rows, given as one flag per row."""
        kept = rows[self.scored]
        return ItemScores(
            scored=self.scored[rows],
            excluded=self.excluded[rows],
            invalid=self.invalid[rows],
            values=self.values[kept],
            weights=None if self.weights is None else self.weights[kept],
            clusters=None if self.clusters is None else self.clusters[kept],
            strata=None if self.strata is None else self.strata[kept],
        )


def fraction_bounds(unit: str) -> Interval | None:
    """(0, 1) for fractions; a loss has no bounds."""
    return (0.0, 1.0) if unit == "fraction" else None


def metric_rows(scores: pa.Table, metric: str) -> pa.Table:
    """The rows of one metric of a score table."""
    return scores.filter(pc.equal(scores["metric"], metric))


def item_scores(rows: pa.Table, info: MetricTraits, *, clustered: bool, stratified: bool = False) -> ItemScores:
    """Arrays of one metric's rows: columns item_id, value, weight, status; cluster when `clustered`, stratum likewise.

    Raises DataError for an item with two scores, a value that is no finite number, or a weight below zero.
    """
    if not _ascends(rows["item_id"]):
        distinct = pc.count_distinct(rows["item_id"]).as_py()
        if distinct != rows.num_rows:
            first = _first_duplicate(rows)
            raise DataError(f"{rows.num_rows - distinct} items have more than one score: {first!r} is one")
    status = rows["status"].combine_chunks().cast(pa.string())
    excluded = _flags(pc.equal(status, "excluded"))
    value = rows["value"].combine_chunks().cast(pa.float64())
    scored = _flags(pc.is_valid(value)) & ~excluded & ~_flags(pc.equal(status, "missing"))
    values = value.to_numpy(zero_copy_only=False)[scored]
    weights = rows["weight"].combine_chunks().cast(pa.float64()).to_numpy(zero_copy_only=False)[scored]
    for name, bad in (("value", ~np.isfinite(values)), ("weight", ~(np.isfinite(weights) & (weights >= 0)))):
        if bad.any():
            where = int(np.flatnonzero(scored)[int(np.argmax(bad))])
            found = (values if name == "value" else weights)[int(np.argmax(bad))]
            raise DataError(f"item {rows['item_id'][where].as_py()!r} has the {name} {found}; expected a finite number")
    return ItemScores(
        scored=scored,
        excluded=excluded,
        invalid=_flags(pc.equal(status, "invalid")),
        values=values,
        weights=weights if info.summary == "pooled" and len(weights) and np.ptp(weights) > 0 else None,
        clusters=cluster_codes(rows["cluster"])[scored] if clustered else None,
        strata=stratum_codes(rows["stratum"])[scored] if stratified else None,
    )


def measured(items: ItemScores, info: MetricTraits, *, n_missing: int) -> Estimate:
    """The metric's score on these items, its interval widened to what `n_missing` lost items could have been."""
    bounds = fraction_bounds(info.unit)
    arrays = items.values, items.weights, items.clusters
    known = estimate(*arrays, items.strata, binary=info.binary, bounds=bounds)
    return widen_for_missing(known, *arrays, n_missing=n_missing, binary=info.binary, bounds=bounds)


def cluster_codes(column: pa.Array | pa.ChunkedArray) -> IntArray:
    """Integer codes of cluster names; an item without a name is a cluster of its own."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    encoded = whole.cast(pa.string()).dictionary_encode()
    codes = pc.fill_null(encoded.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False).copy()
    unnamed = codes < 0
    codes[unnamed] = len(encoded.dictionary) + np.arange(int(np.count_nonzero(unnamed)))
    return np.asarray(codes, dtype=np.int64)


def stratum_codes(column: pa.Array | pa.ChunkedArray) -> IntArray:
    """Integer codes of stratum names; items that name none are a stratum together."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    codes = whole.cast(pa.string()).dictionary_encode().indices.cast(pa.int64())
    return np.asarray(pc.fill_null(codes, -1).to_numpy(zero_copy_only=False), dtype=np.int64)


def _ascends(ids: pa.ChunkedArray) -> bool:
    """Whether each id is above the one before, so that none stands twice: as the store has them."""
    whole = ids.combine_chunks()
    return len(whole) < 2 or bool(pc.all(pc.less(whole[:-1], whole[1:])).as_py())


def _flags(mask: pa.Array) -> BoolArray:
    return np.asarray(mask.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _first_duplicate(rows: pa.Table) -> str:
    counts = pc.value_counts(rows["item_id"])
    values, numbers = counts.field("values"), counts.field("counts")
    return str(values.filter(pc.greater(numbers, 1))[0].as_py())
