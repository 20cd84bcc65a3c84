"""Sample values of a metric's items -> how far samples of one item lie apart, and what that adds to the score's error.

A sampled item's value is a mean over its k samples, so that the variance of the items' values is that between items
plus 1 / k of that within them; the standard error over items has both in it already. The part within is worked out
here from the samples: more samples make it smaller, only more items the rest (Miller 2024, arXiv 2411.00640, on
resampling answers). Samples are independent of each other given their item, clusters or not.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eval_tasks.errors import DataError
from eval_tasks.records import WithinItem
from eval_tasks.stats.item_scores import MetricTraits, item_scores


def within_item(rows: pa.Table, info: MetricTraits, *, n_samples: int) -> WithinItem:
    """From one metric's rows (columns item_id, value, weight, status, sample_values): see `WithinItem` for formulas.

    An item without samples (invalid, counted as wrong) has no spread of its own and adds none. Variance and error are
    None for one sample per item, for rows without sample values (pass@k) and without a scored item. Raises DataError
    for an item with another number of samples.
    """
    unknown = WithinItem(n_samples=n_samples)
    items = item_scores(rows, info, clustered=False)
    sampled = np.asarray(pc.is_valid(rows["sample_values"]).to_numpy(zero_copy_only=False), dtype=np.bool_)
    used = items.scored & sampled
    if n_samples < 2 or not used.any():
        return unknown
    kept = rows.filter(pa.array(used))
    lengths = pc.list_value_length(kept["sample_values"])
    if pc.any(pc.not_equal(lengths, n_samples)).as_py():
        where = pc.index(pc.not_equal(lengths, n_samples), True).as_py()
        raise DataError(
            f"item {kept['item_id'][where].as_py()!r} has {lengths[where].as_py()} sample values, not {n_samples}"
        )
    values = pc.list_flatten(kept["sample_values"]).to_numpy(zero_copy_only=False).reshape(-1, n_samples)
    variances = values.var(axis=1, ddof=1)
    n_scored = len(items.values)
    share = np.full(n_scored, 1 / n_scored) if items.weights is None else items.weights / items.weights.sum()
    of_sampled = share[sampled[items.scored]]
    se = math.sqrt(float(np.sum(of_sampled**2 * variances)) / n_samples)
    return WithinItem(n_samples=n_samples, variance=float(variances.mean()), se=se)
