"""A score's decontaminated companion: the same score on the clean items, and how far the full score is from it.

`not_checkable` items are in neither the clean set nor the contaminated count, but stay in the full score. The
difference is full - clean and is not called inflation: flagged items may also differ in difficulty.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eval_tasks.records import Companion
from eval_tasks.stats.influence import FloatArray, pooled_influences, standard_error
from eval_tasks.stats.item_scores import ItemScores, MetricTraits, item_scores, measured, metric_rows


def difference_se(dirty: FloatArray, clean: FloatArray) -> float | None:
    """SE of full - clean for unweighted items, ``(n_d / n) sqrt(s_d^2 / n_d + s_c^2 / n_c)``.

    `dirty` are all scored items that are not in the clean set. 0 when there are none, None where a spread needs more.
    """
    n_dirty, n_clean = len(dirty), len(clean)
    if n_dirty == 0:
        return 0.0
    if n_dirty < 2 or n_clean < 2:
        return None
    variance = float(dirty.var(ddof=1)) / n_dirty + float(clean.var(ddof=1)) / n_clean
    return float(n_dirty / (n_dirty + n_clean) * np.sqrt(variance))


def difference_in_differences(
    differences: FloatArray, exposed: npt.NDArray[np.bool_], clean: npt.NDArray[np.bool_]
) -> tuple[float, float] | None:
    """(value, SE) of the mean A - B on items that one arm saw, less that on clean items; item differences as given.

    ``sqrt(s_e^2 / n_e + s_c^2 / n_c)``: the two sets share no item. None where one has fewer than two.
    """
    seen, unseen = differences[exposed], differences[clean & ~exposed]
    if len(seen) < 2 or len(unseen) < 2:
        return None
    variance = float(seen.var(ddof=1)) / len(seen) + float(unseen.var(ddof=1)) / len(unseen)
    return float(seen.mean() - unseen.mean()), float(np.sqrt(variance))


def companion(scores: ItemScores, status: npt.NDArray[np.str_], info: MetricTraits) -> Companion:
    """The companion of a metric from its items; `status` has one of clean, contaminated, not_checkable per row."""
    clean = status == "clean"
    kept = scores.take(clean)
    found = measured(kept, info, n_missing=kept.n_missing)
    difference: float | None = None
    error: float | None = None
    if found.score is not None:
        full, influences = pooled_influences(scores.values, scores.weights)
        difference = full - found.score
        on = clean[scores.scored]
        if scores.weights is None and scores.clusters is None:
            error = difference_se(scores.values[~on], scores.values[on])
        elif not on.all():
            influences[on] -= pooled_influences(kept.values, kept.weights)[1]
            error, _ = standard_error(influences, scores.clusters)
        else:
            error = 0.0
    return Companion(
        score=found.score,
        n=found.n,
        se=found.se,
        ci95=found.ci,
        n_contaminated=int(np.count_nonzero(status == "contaminated")),
        n_not_checkable=int(np.count_nonzero(status == "not_checkable")),
        difference=difference,
        difference_se=error,
    )


def item_statuses(item_ids: pa.ChunkedArray, contamination: Mapping[str, str]) -> npt.NDArray[np.str_]:
    """Contamination status per item id; an item that the check does not know is not_checkable."""
    ids, statuses = pa.array(list(contamination), pa.string()), pa.array(list(contamination.values()), pa.string())
    found = statuses.take(pc.index_in(item_ids.combine_chunks().cast(pa.string()), value_set=ids))
    return np.asarray(pc.fill_null(found, "not_checkable").to_numpy(zero_copy_only=False), dtype=np.str_)


def companion_of(
    scores: pa.Table,
    contamination: Mapping[str, str],
    *,
    metric: str,
    info: MetricTraits,
    clustered: bool,
    stratified: bool = False,
) -> Companion:
    """The companion of one metric of a benchmark, from the run's score table of that benchmark.

    contamination: item_id -> clean | contaminated | not_checkable. `clustered`: the benchmark declares a cluster key;
    `stratified`: a stratum key.
    """
    rows = metric_rows(scores, metric)
    statuses = item_statuses(rows["item_id"], contamination)
    return companion(item_scores(rows, info, clustered=clustered, stratified=stratified), statuses, info)
