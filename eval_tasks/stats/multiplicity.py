"""Many p-values -> adjusted ones, and how many would fall below alpha by chance. NaN means "not tested".

Sources: Benjamini and Hochberg 1995; Holm 1979; Benjamini and Yekutieli 2005 (false coverage rate).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy import special

from eval_tasks.stats.influence import FloatArray
from eval_tasks.stats.paired import coin_flips


def benjamini_hochberg(p: FloatArray) -> FloatArray:
    """q-values, shape of p. A NaN stays NaN and takes no part: the others are adjusted as if it were not there.

    Written out (and tested against scipy's): loading scipy.stats costs more than comparing 500,000 items.
    """
    return _step_up(p, 1.0)


def benjamini_yekutieli(p: FloatArray) -> FloatArray:
    """q-values under any dependence of the benchmarks (Benjamini and Yekutieli 2001); NaN as above."""
    return _step_up(p, float(np.sum(1 / np.arange(1, np.count_nonzero(~np.isnan(p)) + 1))))


def _step_up(p: FloatArray, factor: float) -> FloatArray:
    """The smallest of ``factor m p_(j) / j`` over the ranks j from each p's own up, at most 1."""
    tested = ~np.isnan(p)
    adjusted = np.full(p.shape, np.nan)
    values = p[tested]
    order = np.argsort(values, kind="stable")
    m = len(values)
    steps = factor * m * values[order] / np.arange(1, m + 1)
    result = np.empty_like(values)
    result[order] = np.minimum(np.minimum.accumulate(steps[::-1])[::-1], 1.0)
    adjusted[tested] = result
    return adjusted


def holm(p: FloatArray) -> FloatArray:
    """Holm's step-down p-values, for a shipping rule over several primary metrics. NaN as above."""
    tested = ~np.isnan(p)
    adjusted = np.full(p.shape, np.nan)
    values = p[tested]
    order = np.argsort(values, kind="stable")
    steps = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    result = np.empty_like(values)
    result[order] = np.minimum(steps, 1.0)
    adjusted[tested] = result
    return adjusted


def attainable_size(n_discordant: int, alpha: float = 0.05, *, mid_p: bool = True) -> float:
    """Chance under the null that McNemar's p falls to alpha or below when `n_discordant` items differ.

    At most alpha for the exact test (0 at 5 or fewer discordant items); mid-p may lie a little above it.
    """
    if n_discordant == 0:
        return 0.0
    smaller = np.arange(n_discordant // 2 + 1)
    point = coin_flips(smaller, n_discordant)
    p = np.minimum(1.0, 2 * special.bdtr(smaller, n_discordant, 0.5) - (point if mid_p else 0.0))
    if n_discordant % 2 == 0:
        p[-1] = 1.0
    return float(min(1.0, 2 * point[p <= alpha * (1 + 1e-12)].sum()))


def null_expectation(n_discordant: Iterable[int | None], alpha: float = 0.05) -> float:
    """Benchmarks expected at p <= alpha, unadjusted, when no arm is better: the sum of their attainable sizes.

    One entry per tested benchmark; None (continuous or clustered) counts alpha. Stands beside the naive alpha * m.
    With correlated benchmarks the mean holds, but the spread is wider.
    """
    return float(sum(alpha if n is None else attainable_size(n, alpha) for n in n_discordant))


def false_coverage_confidence(n_called: int, n_tested: int, alpha: float = 0.05) -> float:
    """Confidence of intervals for the benchmarks that were called, so that they agree with BH's verdict."""
    return 1 - alpha * n_called / n_tested
