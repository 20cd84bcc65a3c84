"""Score tables of several runs of one benchmark -> one table of means, or aligned values. Pairs by item id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eval_tasks.compare.pairing import not_among, shared_rows
from eval_tasks.errors import DataError, NotComparableError
from eval_tasks.stats.influence import FloatArray, IntArray
from eval_tasks.stats.item_scores import MetricTraits, cluster_codes, item_scores

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aligned:
    """Items that all runs scored: values of shape (runs, items); weights and cluster codes of shape (items,)
    or None.
    """

    values: FloatArray
    weights: FloatArray | None
    clusters: IntArray | None

    def scores(self, values: FloatArray) -> tuple[float, ...]:
        """The mean of each row of `values`, which has as many items."""
        return tuple(float(score) for score in np.average(values, axis=1, weights=self.weights))


def aligned(
    tables: Sequence[pa.Table], info: MetricTraits, *, clustered: bool, changed: frozenset[str] = frozenset()
) -> Aligned | None:
    """The runs' values on the items that all of them scored, without the `changed`; None for fewer than two items.

    Raises DataError for an item with two scores and for a value that is no finite number.
    """
    for table in tables:
        item_scores(table, info, clustered=False)
    first = tables[0]
    ids = _ids(first)
    for table in tables:
        ids = ids.take(pa.array(shared_rows(ids, _ids(table).filter(pa.array(_scored(table))))[0]))
    if changed:
        ids = ids.filter(pa.array(not_among(ids, changed)))
    if len(ids) < 2:
        return None
    rows = [pa.array(shared_rows(ids, _ids(table))[1]) for table in tables]
    weights = None
    if info.summary == "pooled":
        weighed = np.asarray(first["weight"].take(rows[0]).to_numpy(), dtype=np.float64)
        weights = weighed if np.ptp(weighed) > 0 and weighed.sum() > 0 else None
    return Aligned(
        values=np.stack(
            [np.asarray(t["value"].take(r).to_numpy(), dtype=np.float64) for t, r in zip(tables, rows, strict=True)]
        ),
        weights=weights,
        clusters=cluster_codes(first["cluster"].take(rows[0])) if clustered else None,
    )


def mean_rows(benchmark: str, whose: str, tables: Sequence[pa.Table]) -> pa.Table:
    """One row an item: the mean of its values over the runs, lost or excluded where it is so in any of them.

    `whose` runs they are, for the messages.

    Raises NotComparableError when the runs have other items, DataError for an item with two scores or two weights.
    """
    first = tables[0]
    if len(tables) == 1:
        return first
    ids = _ids(first)
    values, lost, excluded = [], np.zeros(len(ids), dtype=bool), np.zeros(len(ids), dtype=bool)
    for number, table in enumerate(tables):
        rows, others = shared_rows(ids, _ids(table))
        if len(rows) < len(ids) or table.num_rows != len(ids):
            raise NotComparableError(
                f"{benchmark}: run {number + 1} of {whose} was planned on other items than run 1; runs of one recipe "
                "are evaluated on the same"
            )
        taken = table.take(pa.array(others))
        value, status = taken["value"].combine_chunks().cast(pa.float64()), taken["status"].combine_chunks()
        names = status.cast(pa.string())
        lost |= _flags(pc.or_(pc.is_null(value), pc.equal(names, "missing")))
        excluded |= _flags(pc.equal(names, "excluded"))
        values.append(value.to_numpy(zero_copy_only=False))
        if not taken["weight"].combine_chunks().equals(first["weight"].combine_chunks()):
            raise DataError(f"{benchmark}: the items weigh differently in the runs of {whose}; grade them again")
    mean = np.mean(values, axis=0)
    status = np.where(excluded, "excluded", np.where(lost, "missing", "ok"))
    return pa.table(
        {
            "item_id": ids,
            "value": pa.array(mean, pa.float64(), mask=lost | excluded),
            "weight": first["weight"],
            "status": pa.array(status, pa.string()),
        }
        | {name: first[name] for name in ("cluster", "stratum") if name in first.column_names}
    )


def _scored(table: pa.Table) -> BoolArray:
    status = table["status"].combine_chunks().cast(pa.string())
    unscored = pc.is_in(status, value_set=pa.array(["missing", "excluded"]))
    return _flags(pc.and_(pc.is_valid(table["value"].combine_chunks()), pc.invert(unscored)))


def _ids(table: pa.Table) -> pa.Array:
    return table["item_id"].combine_chunks().cast(pa.string())


def _flags(mask: pa.Array) -> BoolArray:
    return np.asarray(mask.to_numpy(zero_copy_only=False), dtype=np.bool_)
