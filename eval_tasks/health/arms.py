"""Score tables of one benchmark at two looks -> aligned arrays with the name of each item's domain. Knows no test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eval_tasks.records import BenchmarkVersion
from eval_tasks.scoring import MetricInfo, metric_of
from eval_tasks.stats.influence import FloatArray, IntArray
from eval_tasks.stats.item_scores import item_scores
from eval_tasks.stats.paired import PairedEstimate, paired_continuous

if TYPE_CHECKING:
    from eval_tasks.store import Store

_COLUMNS = ("item_id", "value", "weight", "status", "stratum", "cluster", "extracted")


@dataclass(frozen=True, slots=True, kw_only=True)
class LookScores:
    """One look's rows of one metric: ids and values of the scored items, and their answers where there are any."""

    item_ids: pa.Array
    values: FloatArray
    weights: FloatArray | None
    clusters: IntArray | None
    strata: tuple[str | None, ...]
    answers: tuple[str | None, ...]

    @property
    def modal(self) -> tuple[int, str]:
        """How often the most frequent answer was given, and which it is; (0, "") where nothing was extracted."""
        counts = Counter(answer for answer in self.answers if answer is not None)
        # Of two that are as frequent, the first by name: a result must not depend on the order of rows.
        return max(((n, answer) for answer, n in counts.items()), key=lambda a: (a[0], a[1]), default=(0, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The items that both looks scored, in one order. `now` and `earlier` have the shape (items,)."""

    now: FloatArray
    earlier: FloatArray
    weights: tuple[FloatArray, FloatArray] | None
    clusters: IntArray | None
    domains: npt.NDArray[np.object_]

    def estimate(self, rows: npt.NDArray[np.bool_] | None = None) -> PairedEstimate | None:
        """now - earlier on all items or on `rows`; None when none is left."""
        chosen = np.ones(len(self.now), dtype=np.bool_) if rows is None else rows
        if not chosen.any():
            return None
        weights = None if self.weights is None else (self.weights[0][chosen], self.weights[1][chosen])
        if weights is not None and min(w.sum() for w in weights) <= 0:
            return None
        clusters = None if self.clusters is None else self.clusters[chosen]
        return paired_continuous(self.now[chosen], self.earlier[chosen], clusters, weights)


def read_look(store: Store, run_id: str, benchmark: BenchmarkVersion, grader: str) -> LookScores:
    """The primary metric of a benchmark in one run by one grader."""
    info: MetricInfo = metric_of(benchmark, benchmark.primary_metric)
    rows = store.scores.read(
        run_id, benchmark.benchmark_id, grader=grader, metric=benchmark.primary_metric, columns=_COLUMNS
    )
    items = item_scores(rows, info, clustered=benchmark.cluster_key is not None)
    kept = rows.filter(pa.array(items.scored))
    weights = np.asarray(kept["weight"].combine_chunks().to_numpy(zero_copy_only=False), dtype=np.float64)
    return LookScores(
        item_ids=kept["item_id"].combine_chunks(),
        values=items.values,
        weights=weights if info.summary == "pooled" else None,
        clusters=items.clusters,
        strata=tuple(kept["stratum"].to_pylist()),
        answers=tuple(kept["extracted"].to_pylist()),
    )


def domains_of(store: Store, benchmark: BenchmarkVersion) -> Mapping[str, str] | None:
    """item_id -> category, where the benchmark declares a category column; None where its strata are its domains."""
    if benchmark.category_key is None:
        return None
    items = store.blobs.get_items(benchmark.items_blob)
    return {item.item_id: str(item.metadata.get("category") or "") for item in items}


def pair(now: LookScores, earlier: LookScores, categories: Mapping[str, str] | None = None) -> Pair:
    """The items of both, in the order of now; a domain is a category, or a stratum, or "" for none."""
    at = pc.index_in(now.item_ids, value_set=earlier.item_ids)
    shared = np.asarray(pc.is_valid(at).to_numpy(zero_copy_only=False), dtype=np.bool_)
    index = np.asarray(at.drop_null().to_numpy(zero_copy_only=False), dtype=np.int64)
    if categories is None:
        names = [stratum or "" for stratum in now.strata]
    else:
        names = [categories.get(item_id, "") for item_id in now.item_ids.to_pylist()]
    weights = None
    if now.weights is not None and earlier.weights is not None:
        weights = now.weights[shared], earlier.weights[index]
    return Pair(
        now=now.values[shared],
        earlier=earlier.values[index],
        weights=weights,
        clusters=None if now.clusters is None else now.clusters[shared],
        domains=np.array(names, dtype=np.object_)[shared],
    )
