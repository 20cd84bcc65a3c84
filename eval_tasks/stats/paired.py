"""Two arms on the same items -> difference, standard error, interval and p. delta = A - B.

McNemar's mid-p and Newcombe's interval for right-or-wrong items, paired t for the others, CR1 or CR2 where items share
a cluster, errors within strata where the benchmark has them: then `influences` are taken within strata too, so that a
composite's error is. Sources: Fagerland, Lydersen, Laake 2013 (mid-p); Newcombe 1998, method 10; Dietterich 1998.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from eval_tasks.stats.influence import (
    FloatArray,
    IntArray,
    cluster_sums,
    clustered_error,
    is_zero,
    pooled_influences,
    standard_error,
    within_strata,
)
from eval_tasks.stats.intervals import Interval, t_interval, wilson

_FLIPS_AT_ONCE = 4_000_000
_EXACT_FLIPS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Items by who was right: `both`, `b` only A, `c` only B, `neither`."""

    both: int
    b: int
    c: int
    neither: int

    @property
    def n(self) -> int:
        """All items."""
        return self.both + self.b + self.c + self.neither

    @property
    def n_discordant(self) -> int:
        """Items on which the arms differ."""
        return self.b + self.c


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedEstimate:
    """A difference of two arms. With a `table` the interval is Newcombe's, otherwise t with `df`.

    `influences` sum to zero, one per pair: what a composite adds up. `p_exact` is McNemar's, None when continuous.
    """

    delta: float
    score_a: float
    score_b: float
    n: int
    se: float | None
    df: float
    p: float | None
    p_exact: float | None
    p_mid: float | None
    method: str
    table: Table | None
    newcombe: Table | None
    influences: FloatArray

    def interval(self, confidence: float = 0.95) -> Interval | None:
        """Interval of the difference; None when one pair or one cluster is all there is."""
        if self.newcombe is not None:
            return newcombe10(self.newcombe, confidence)
        return t_interval(self.delta, self.se, self.df, confidence)


def table_of(a: FloatArray, b: FloatArray) -> Table:
    """The 2 x 2 table of two arrays of zeros and ones on the same items."""
    right_a, right_b = a != 0, b != 0
    both = int(np.count_nonzero(right_a & right_b))
    only_a, only_b = int(np.count_nonzero(right_a)) - both, int(np.count_nonzero(right_b)) - both
    return Table(both=both, b=only_a, c=only_b, neither=len(a) - both - only_a - only_b)


def mcnemar_mid_p(b: int, c: int) -> float:
    """Two-sided mid-p: 2 P(X <= min) - P(X = min), X ~ Binomial(b + c, 1/2). 1 when b = c, none discordant included."""
    if b == c:
        return 1.0
    smaller, n = min(b, c), b + c
    return float(min(1.0, 2 * special.bdtr(smaller, n, 0.5) - coin_flips(smaller, n)))


def mcnemar_exact(b: int, c: int) -> float:
    """Two-sided exact (conditional binomial) p; 1 when nothing is discordant."""
    return float(min(1.0, 2 * special.bdtr(min(b, c), b + c, 0.5)))


def coin_flips(k: Any, n: int) -> Any:
    """P(X = k), X ~ Binomial(n, 1/2), for a number or an array k."""
    return np.exp(-special.betaln(k + 1, n - k + 1) - np.log(n + 1) - n * np.log(2))


def newcombe10(table: Table, confidence: float = 0.95) -> Interval | None:
    """Newcombe's 1998 method 10 interval of p_A - p_B: two Wilson intervals joined by a continuity-corrected phi."""
    n = table.n
    if n == 0:
        return None
    right_a, right_b = table.both + table.b, table.both + table.c
    p_a, p_b = right_a / n, right_b / n
    interval_a, interval_b = wilson(right_a, n, confidence), wilson(right_b, n, confidence)
    if interval_a is None or interval_b is None:
        return None
    phi = _phi(table)
    below_a, above_a = p_a - interval_a[0], interval_a[1] - p_a
    below_b, above_b = p_b - interval_b[0], interval_b[1] - p_b
    lower = math.sqrt(max(0.0, below_a**2 - 2 * phi * below_a * above_b + above_b**2))
    upper = math.sqrt(max(0.0, above_a**2 - 2 * phi * above_a * below_b + below_b**2))
    delta = (table.b - table.c) / n
    return max(-1.0, delta - lower), min(1.0, delta + upper)


def _phi(table: Table) -> float:
    """Correlation of the arms, its numerator moved n / 2 towards zero when positive (0 where a margin is empty)."""
    margins = (table.both + table.b, table.c + table.neither, table.both + table.c, table.b + table.neither)
    if 0 in margins:
        return 0.0
    product = float(table.both) * table.neither - float(table.b) * table.c
    if product > 0:
        product = max(product - table.n / 2, 0.0)
    return product / math.sqrt(math.prod(map(float, margins)))


def paired_binary(
    a: FloatArray, b: FloatArray, clusters: IntArray | None = None, strata: IntArray | None = None
) -> PairedEstimate:
    """Two arrays of zeros and ones, shape (n,), n >= 1. Where clusters are given their p decides, mid-p stands beside.

    Strata move the standard error alone: mid-p is exact given the flips, whatever their strata, and Newcombe's interval
    is a little wider than it must be. Without any discordant pair the clustered interval would have no width; it is
    Newcombe's on that many clusters.
    """
    table = table_of(a, b)
    n, delta = table.n, (table.b - table.c) / table.n
    influences = (a - b - delta) / n
    p_mid, p_exact = mcnemar_mid_p(table.b, table.c), mcnemar_exact(table.b, table.c)
    se, n_clusters = standard_error(influences, clusters)
    df = float(n_clusters - 1)
    if clusters is None and strata is not None and se is not None:
        influences, se, df = _inside(influences, strata)
    p: float | None = p_mid
    newcombe: Table | None = table
    method = "McNemar mid-p, Newcombe 10"
    if clusters is not None:
        se, df, kind = clustered_error(influences, clusters)
        method = f"clustered pairs, {kind}, t({_degrees(df)})"
        p = t_test_p(delta, se, df + 1)
        newcombe = None
        if se is not None and is_zero(se, 1.0):
            right = round(float(a.mean()) * n_clusters)
            newcombe = Table(both=right, b=0, c=0, neither=n_clusters - right) if table.n_discordant == 0 else table
    return PairedEstimate(
        delta=delta,
        score_a=(table.both + table.b) / n,
        score_b=(table.both + table.c) / n,
        n=n,
        se=se,
        df=df,
        p=p,
        p_exact=p_exact,
        p_mid=p_mid,
        method=method,
        table=table,
        newcombe=newcombe,
        influences=influences,
    )


def paired_continuous(
    a: FloatArray,
    b: FloatArray,
    clusters: IntArray | None = None,
    weights: tuple[FloatArray, FloatArray] | None = None,
    strata: IntArray | None = None,
) -> PairedEstimate:
    """Paired t on item differences, clustered or within strata where those are given; with weights of two ratios.

    Not Wilcoxon: it does not test the mean, and rejects true nulls on skewed differences.
    """
    n = len(a)
    score_a, influence_a = pooled_influences(a, weights[0] if weights else None)
    score_b, influence_b = pooled_influences(b, weights[1] if weights else None)
    influences = influence_a - influence_b
    delta = float((a - b).mean()) if weights is None else score_a - score_b
    se, n_clusters = standard_error(influences, clusters)
    df, kind = float(n_clusters - 1), "CR1"
    if clusters is not None and weights is None:
        se, df, kind = clustered_error(influences, clusters)
    what = "difference of ratios" if weights else "differences"
    if clusters is None and strata is not None and se is not None:
        influences, se, df = _inside(influences, strata)
        what += f" within strata, t({_degrees(df)})"
    method = f"clustered {what}, {kind}, t({_degrees(df)})" if clusters is not None else f"paired t on {what}"
    return PairedEstimate(
        delta=delta,
        score_a=score_a,
        score_b=score_b,
        n=n,
        se=se,
        df=df,
        p=t_test_p(delta, se, df + 1),
        p_exact=None,
        p_mid=None,
        method=method,
        table=None,
        newcombe=None,
        influences=influences,
    )


def _inside(influences: FloatArray, strata: IntArray) -> tuple[FloatArray, float, float]:
    """Influences within strata, their standard error and its degrees of freedom."""
    inside, df = within_strata(influences, strata)
    return inside, float(np.sqrt(inside @ inside)), float(df)


def _degrees(df: float) -> str:
    return f"{df:.1f}".removesuffix(".0")


def t_test_p(delta: float, se: float | None, n_clusters: float) -> float | None:
    """Two-sided p of delta / se on n_clusters - 1 degrees, which need not be whole (Satterthwaite's are not).

    Differences that are all alike have no spread: p is then that of the same sign n_clusters times, 2 / 2^n_clusters.
    """
    if se is None:
        return None
    if is_zero(se, max(abs(delta), 1e-15)):
        return 1.0 if delta == 0 else min(1.0, 2.0 * 0.5**n_clusters)
    return float(2 * special.stdtr(n_clusters - 1, -abs(delta) / se))


def sign_flip_p(
    differences: FloatArray, clusters: IntArray | None = None, *, flips: int = 9_999, seed: int = 0
) -> float:
    """Two-sided p of the mean by flipping signs: all 2^n patterns up to 12 units, else `flips` seeded draws.

    A unit is an item, or a cluster whose items are flipped together. The observed pattern counts as one draw.
    """
    units = cluster_sums(differences, clusters)
    units = units[units != 0]
    if len(units) == 0:
        return 1.0
    limit = abs(float(units.sum())) * (1 - 1e-12)
    if len(units) <= _EXACT_FLIPS:
        patterns = (np.arange(2 ** len(units))[:, None] >> np.arange(len(units))) & 1
        return float(np.mean(np.abs((1 - 2 * patterns) @ units) >= limit))
    generator = np.random.default_rng(seed)
    rows = max(1, _FLIPS_AT_ONCE // len(units))
    as_large = 0
    for start in range(0, flips, rows):
        signs = generator.integers(0, 2, size=(min(rows, flips - start), len(units)), dtype=np.int8)
        as_large += int(np.count_nonzero(np.abs((1.0 - 2.0 * signs) @ units) >= limit))
    return (as_large + 1) / (flips + 1)
