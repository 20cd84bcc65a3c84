"""Item scores -> one score with n, standard error and interval.

`estimate` picks the method from what the metric is; the others are the methods. Wilson for right-or-wrong items, t for
continuous ones, CR1 with t on G - 1 where items share a cluster, within strata where the benchmark has them, a ratio
for pooled metrics. n = 0 gives None everywhere, n = 1 no standard error. Sources: Wilson 1927; Miller 2024
(arXiv 2411.00640); Cochran 1977, chapters 5, 6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from eval_tasks.stats.influence import FloatArray, IntArray, is_zero, pooled_influences, standard_error, within_strata

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A score with its error. `method` names the interval; `ci` has the confidence it was asked for."""

    score: float | None
    n: int
    se: float | None
    ci: Interval | None
    method: str


NOTHING = Estimate(score=None, n=0, se=None, ci=None, method="no scored items")


def wilson(k: float, n: float, confidence: float = 0.95) -> Interval | None:
    """Wilson score interval of k right out of n; None when n is 0. An effective size need not be whole.

    Written out, since scipy's goes by way of an exact test (20 times slower, and an equivalence test needs 80 of them).
    """
    if n == 0:
        return None
    z = -float(special.ndtri((1 - confidence) / 2))
    center = (k + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(k * (n - k) / n + z * z / 4)
    return (0.0 if k == 0 else max(0.0, center - half)), (1.0 if k == n else min(1.0, center + half))


def proportion(k: int, n: int, confidence: float = 0.95) -> Estimate:
    """k right out of n: Wilson's interval, and the sample standard deviation over sqrt(n), as lm-eval has it."""
    if n == 0:
        return NOTHING
    p = k / n
    se = float(np.sqrt(p * (1 - p) / (n - 1))) if n > 1 else None
    return Estimate(score=p, n=n, se=se, ci=wilson(k, n, confidence), method="Wilson")


def t_quantile(p: float, df: float) -> float:
    """Quantile of Student's t; the normal's for infinite degrees."""
    return float(special.ndtri(p) if math.isinf(df) else special.stdtrit(df, p))


def t_interval(center: float, se: float | None, df: float, confidence: float = 0.95) -> Interval | None:
    """center +- t(df) * se; None without a standard error or degrees of freedom. An infinite df is the normal."""
    if se is None or df <= 0:
        return None
    half = t_quantile(0.5 + confidence / 2, df) * se
    return center - half, center + half


def pooled(
    values: FloatArray,
    weights: FloatArray | None = None,
    clusters: IntArray | None = None,
    *,
    confidence: float = 0.95,
    bounds: Interval | None = None,
) -> Estimate:
    """sum(v * w) / sum(w) with a t interval on G - 1; the plain mean when there are no weights.

    Within `bounds` (such as (0, 1)) the interval is cut to them, and scores without any spread get the Wilson interval
    of that many independent clusters instead of a width of 0: 0 of 25 is not "0 plus or minus 0".
    """
    if len(values) == 0:
        return NOTHING
    score, influences = pooled_influences(values, weights)
    se, n_clusters = standard_error(influences, clusters)
    ci = t_interval(score, se, n_clusters - 1, confidence)
    what = "ratio" if weights is not None else "mean"
    method = f"clustered {what}, CR1, t({n_clusters - 1})" if clusters is not None else f"{what}, t({n_clusters - 1})"
    if bounds is not None and se is not None and ci is not None:
        ci = max(ci[0], bounds[0]), min(ci[1], bounds[1])
        low, high = bounds
        if is_zero(se, high - low):
            right = wilson(round((score - low) / (high - low) * n_clusters), n_clusters, confidence)
            ci = (low + right[0] * (high - low), low + right[1] * (high - low)) if right else None
            method += "; no spread: Wilson on clusters" if clusters is not None else "; no spread: Wilson"
    return Estimate(score=score, n=len(values), se=se, ci=ci, method=method)


def stratified(
    values: FloatArray,
    strata: IntArray,
    weights: FloatArray | None = None,
    *,
    binary: bool = False,
    bounds: Interval | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """The score with its error within strata only: `eval_tasks.stats.influence.within_strata`.

    Right-or-wrong items get Wilson's interval at the number of items that would have this error without strata,
    ``p (1 - p) / SE^2 + 1`` (its coverage is simulated: 94 to 96 % from 3 items a stratum on); others t on n - H. Where
    no stratum has any spread there is nothing to gain, and the plain interval stands.
    """
    n = len(values)
    plain = proportion(int(np.count_nonzero(values)), n, confidence) if binary and weights is None else None
    if plain is None:
        plain = pooled(values, weights, confidence=confidence, bounds=bounds)
    if n < 2 or plain.score is None:
        return plain
    _, influences = pooled_influences(values, weights)
    inside, df = within_strata(influences, strata)
    se = float(np.sqrt(inside @ inside))
    if is_zero(se, 1.0):
        return replace(plain, method=f"{plain.method}; no spread within strata")
    if binary and weights is None:
        p = plain.score
        n_effective = p * (1 - p) / se**2 + 1
        ci = wilson(p * n_effective, n_effective, confidence)
        return replace(plain, se=se, ci=ci, method="Wilson, stratified")
    ci = t_interval(plain.score, se, df, confidence)
    if bounds is not None and ci is not None:
        ci = max(ci[0], bounds[0]), min(ci[1], bounds[1])
    what = "ratio" if weights is not None else "mean"
    return replace(plain, se=se, ci=ci, method=f"stratified {what}, t({df})")


def macro_average(scores: FloatArray, ses: FloatArray, confidence: float = 0.95) -> Estimate:
    """Mean of k scores that count alike whatever their size; SE = sqrt(sum se_k^2) / k, normal interval."""
    k = len(scores)
    if k == 0:
        return NOTHING
    score, se = float(scores.mean()), float(np.sqrt(ses @ ses)) / k
    return Estimate(score=score, n=k, se=se, ci=t_interval(score, se, np.inf, confidence), method="macro average")


def estimate(
    values: FloatArray,
    weights: FloatArray | None = None,
    clusters: IntArray | None = None,
    strata: IntArray | None = None,
    *,
    binary: bool,
    bounds: Interval | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """The score of one metric by the method that fits it.

    values: shape (n,), finite. weights: None or all equal means each item counts alike. clusters, strata: integer
    codes; where items share clusters, strata are not looked at.
    """
    if weights is not None and (len(weights) == 0 or bool(np.all(weights == weights[0]))):
        weights = None
    if binary and weights is None and clusters is None and strata is None:
        return proportion(int(np.count_nonzero(values)), len(values), confidence)
    if weights is not None and float(weights.sum()) <= 0:
        return NOTHING
    if strata is not None and clusters is None:
        return stratified(values, strata, weights, binary=binary, bounds=bounds, confidence=confidence)
    return pooled(values, weights, clusters, confidence=confidence, bounds=bounds)


def widen_for_missing(
    known: Estimate,
    values: FloatArray,
    weights: FloatArray | None = None,
    clusters: IntArray | None = None,
    *,
    n_missing: int,
    binary: bool,
    bounds: Interval | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """`known` with its interval widened to what `n_missing` lost items could have scored.

    From the lower end with all of them at the worst value to the upper end with all at the best: `bounds` where the
    metric has them, else the lowest and highest value seen. A lost item has the mean weight and a cluster of its own;
    the ends are those of the plain method, which strata only narrow.
    """
    if n_missing <= 0:
        return known
    span = bounds if bounds is not None else ((float(values.min()), float(values.max())) if len(values) else None)
    if span is None:
        return replace(known, method=f"{known.method}; {n_missing} missing")
    if clusters is not None:
        first = int(clusters.max(initial=-1)) + 1
        clusters = np.concatenate([clusters, np.arange(first, first + n_missing)])
    if weights is not None:
        weights = np.concatenate([weights, np.full(n_missing, weights.mean() if len(weights) else 1.0)])
    ends = [
        estimate(
            np.concatenate([values, np.full(n_missing, fill)]),
            weights,
            clusters,
            binary=binary,
            bounds=bounds,
            confidence=confidence,
        ).ci
        for fill in span
    ]
    if ends[0] is None or ends[1] is None:
        return replace(known, method=f"{known.method}; {n_missing} missing")
    low, high = ends[0][0], ends[1][1]
    if known.ci is not None:
        low, high = min(low, known.ci[0]), max(high, known.ci[1])
    reach = "all wrong to all right" if bounds is not None else "lowest to highest value seen"
    return replace(known, ci=(low, high), method=f"{known.method}; widened for {n_missing} missing ({reach})")
