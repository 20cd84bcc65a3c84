"""Two score tables of one benchmark and metric -> aligned arrays. Pairs by item id, without a loop over items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eval_tasks.compare.exposure import Exposure
from eval_tasks.errors import DataError, NotComparableError
from eval_tasks.records.verdict import Compatibility
from eval_tasks.stats.companion import item_statuses
from eval_tasks.stats.influence import FloatArray, IntArray
from eval_tasks.stats.intervals import Interval
from eval_tasks.stats.item_scores import BoolArray, MetricTraits, fraction_bounds, item_scores, stratum_codes


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkArms:
    """One benchmark of two runs: the rows of `metric` in each, with columns item_id, value, weight, status, cluster.

    `clustered`: a cluster key is declared, so the clustered p decides. `stratified`: a stratum key is (column stratum),
    and errors are those within strata, unless items are clustered. `contamination`: item_id -> clean, contaminated,
    not_checkable; None when never checked. `not_tested`: why the benchmark takes no part, such as its quarantine.
    `difference`: which digest differs, in words, when the items of the two may not be the same. `grader`: whose scores.
    `changed`: ids that stand for another item in each arm, and make no pairs. `exposure`: items that one arm alone may
    have seen in training.
    """

    benchmark: str
    metric: str
    info: MetricTraits
    a: pa.Table
    b: pa.Table
    clustered: bool = False
    compatibility: Compatibility = "SCORE"
    difference: str = ""
    contamination: Mapping[str, str] | None = None
    contamination_note: str = "never checked"
    not_tested: str = ""
    notes: tuple[str, ...] = ()
    grader: str = ""
    stratified: bool = False
    changed: frozenset[str] = frozenset()
    exposure: Exposure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Items that both arms scored: values and weights of each arm, cluster names and clean flags, shape (pairs,).

    `n_attempted` counts items of either arm that are not excluded. `gap` bounds the sum of the differences of items
    whose score is missing in an arm, (lowest, highest); None for a metric without bounds.
    """

    a: FloatArray
    b: FloatArray
    weights: tuple[FloatArray, FloatArray] | None
    clusters: pa.Array | None
    clean: BoolArray | None
    n_attempted: int
    n_missing: int
    gap: Interval | None
    full_a: float | None
    full_b: float | None
    overlap_only: bool
    strata: IntArray | None = None
    exposed: BoolArray | None = None

    def only_clean(self) -> Pairs:
        """The pairs that are known to be clean; missing items are then unknown and bound nothing."""
        if self.clean is None:
            return self
        keep = self.clean
        return replace(
            self,
            a=self.a[keep],
            b=self.b[keep],
            weights=None if self.weights is None else (self.weights[0][keep], self.weights[1][keep]),
            clusters=None if self.clusters is None else self.clusters.filter(pa.array(keep)),
            strata=None if self.strata is None else self.strata[keep],
            clean=None,
            exposed=None,
            n_missing=0,
            gap=None,
        )


def pair(arms: BenchmarkArms) -> Pairs:
    """Align two arms. Raises NotComparableError when they share no item, DataError for duplicates or bad numbers."""
    return pair_with_ids(arms)[1]


def pair_with_ids(arms: BenchmarkArms) -> tuple[pa.Array, Pairs]:
    """As `pair`, with the ids of the pairs, in their order."""
    sides = []
    for name, table in (("A", arms.a), ("B", arms.b)):
        try:
            sides.append(item_scores(table, arms.info, clustered=False))
        except DataError as error:
            raise DataError(f"{arms.benchmark}, {arms.metric}, arm {name}: {error}") from error
    items_a, items_b = sides
    ids_a, ids_b = (t["item_id"].combine_chunks().cast(pa.string()) for t in (arms.a, arms.b))
    rows_a, rows_b = shared_rows(ids_a, ids_b)
    if arms.changed:
        same = not_among(ids_a.take(pa.array(rows_a)), arms.changed)
        rows_a, rows_b = rows_a[same], rows_b[same]
    if len(rows_a) == 0:
        why = arms.difference or "the items differ"
        raise NotComparableError(
            f"{arms.benchmark}: the two runs have no item in common ({why}); compare runs of one benchmark version"
        )
    value_a, value_b = _column(arms.a, "value"), _column(arms.b, "value")
    counted = ~(items_a.excluded[rows_a] | items_b.excluded[rows_b])
    scored = counted & items_a.scored[rows_a] & items_b.scored[rows_b]
    lost = counted & ~scored
    kept_a, kept_b = rows_a[scored], rows_b[scored]
    cluster, clean = None, None
    if arms.clustered:
        cluster = _names(arms.a, kept_a, ids_a)
    if arms.contamination is not None:
        clean = item_statuses(pa.chunked_array([ids_a.take(pa.array(kept_a))]), arms.contamination) == "clean"
    exposed = None
    if arms.exposure is not None and clean is not None:
        listed = pa.array(sorted(arms.exposure.item_ids), pa.string())
        exposed = np.asarray(pc.is_in(ids_a.take(pa.array(kept_a)), value_set=listed).to_numpy(zero_copy_only=False))
    alone = int(np.count_nonzero(~items_a.excluded)) + int(np.count_nonzero(~items_b.excluded))
    shared = int(np.count_nonzero(~items_a.excluded[rows_a])) + int(np.count_nonzero(~items_b.excluded[rows_b]))
    pairs = Pairs(
        a=value_a[kept_a],
        b=value_b[kept_b],
        weights=_weights(arms, kept_a, kept_b),
        clusters=cluster,
        clean=clean,
        n_attempted=int(np.count_nonzero(counted)) + alone - shared,
        n_missing=int(np.count_nonzero(lost)),
        gap=_gap(
            np.where(items_a.scored, value_a, np.nan)[rows_a[lost]],
            np.where(items_b.scored, value_b, np.nan)[rows_b[lost]],
            fraction_bounds(arms.info.unit),
        ),
        full_a=_full_score(items_a.values, items_a.weights),
        full_b=_full_score(items_b.values, items_b.weights),
        strata=stratum_codes(arms.a["stratum"])[kept_a] if arms.stratified and not arms.clustered else None,
        exposed=exposed,
        overlap_only=len(rows_a) < max(len(ids_a), len(ids_b)),
    )
    return ids_a.take(pa.array(kept_a)), pairs


def shared_rows(a: pa.Array, b: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows of the ids that both arms have, in the order of A; no id is looked up where all stand alike."""
    if a.equals(b):
        return np.arange(len(a)), np.arange(len(a))
    in_b = pc.index_in(a, value_set=b)
    rows = np.flatnonzero(np.asarray(pc.is_valid(in_b).to_numpy(zero_copy_only=False), dtype=np.bool_))
    return rows, pc.drop_null(in_b).to_numpy(zero_copy_only=False).astype(np.int64)


def not_among(ids: pa.Array, changed: frozenset[str]) -> BoolArray:
    """For each id whether it is none of `changed`."""
    found = pc.is_in(ids, value_set=pa.array(sorted(changed), pa.string()))
    return ~np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.bool_)


def shares_items(a: pa.Table, b: pa.Table, changed: frozenset[str] = frozenset()) -> bool:
    """Whether any item id is in both tables, and not `changed`."""
    ids_a, ids_b = a["item_id"], b["item_id"]
    if changed:
        ids_a = ids_a.combine_chunks().cast(pa.string())
        ids_a = ids_a.filter(pa.array(not_among(ids_a, changed)))
    elif a.num_rows and b.num_rows and ids_a[0] == ids_b[0]:
        return True
    return bool(pc.any(pc.is_in(ids_a, value_set=ids_b.combine_chunks())).as_py())


def _column(table: pa.Table, name: str) -> FloatArray:
    return np.asarray(table[name].combine_chunks().cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def _names(table: pa.Table, rows: npt.NDArray[np.int64], ids: pa.Array) -> pa.Array:
    """Cluster names of rows; an item without one is a cluster of its own, named by its id."""
    own = pc.binary_join_element_wise("item", ids, "\x1f")
    names = pc.coalesce(table["cluster"].combine_chunks().cast(pa.string()), own)
    return names.take(pa.array(rows))


def _weights(
    arms: BenchmarkArms, rows_a: npt.NDArray[np.int64], rows_b: npt.NDArray[np.int64]
) -> tuple[FloatArray, FloatArray] | None:
    if arms.info.summary != "pooled" or len(rows_a) == 0:
        return None
    weights = _column(arms.a, "weight")[rows_a], _column(arms.b, "weight")[rows_b]
    if min(w.sum() for w in weights) <= 0 or max(float(np.ptp(w)) for w in weights) == 0:
        return None
    return weights


def _gap(a: FloatArray, b: FloatArray, bounds: Interval | None) -> Interval | None:
    """What the differences of half-known items can add up to: an unknown side is anything within the bounds."""
    if bounds is None:
        return None
    low, high = bounds
    worst = np.where(np.isnan(a), low, a) - np.where(np.isnan(b), high, b)
    best = np.where(np.isnan(a), high, a) - np.where(np.isnan(b), low, b)
    return float(worst.sum()), float(best.sum())


def _full_score(values: FloatArray, weights: FloatArray | None) -> float | None:
    if len(values) == 0:
        return None
    return float(np.average(values, weights=weights))
