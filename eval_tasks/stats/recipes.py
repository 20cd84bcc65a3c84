"""Differences of checkpoints and variances that all items share -> do the recipes differ? Knows no run and no store.

Two checkpoints may differ by more than their items can explain by chance, and training again with another seed would
still turn the difference round. Here the seed's variance joins the pairs' (statistics of two arms trained apart), and
so do those of the engine and of two environments. Item flips between reruns are in the paired error already, so only
the common part of each variance is added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eval_tasks.stats.influence import FloatArray, IntArray
from eval_tasks.stats.intervals import Interval, t_interval
from eval_tasks.stats.paired import t_test_p
from eval_tasks.stats.planning import MOST_SEEDS
from eval_tasks.stats.power import mde_from_se

PRIOR_DF = 6.0
"""Degrees of freedom that the benchmarks' shared seed variance counts for beside each one's own, at most."""

TAU = 0.5
"""Standard deviation of the log-error of a seed's sigma that was measured at another scale."""

_Z80 = 0.8416


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonVariance:
    """A variance that was estimated: `total` on `df` degrees of freedom, of which `flips` are item flips."""

    total: float
    flips: float
    df: float

    @property
    def common(self) -> float:
        """What all items share: the part that the paired error does not hold."""
        return max(0.0, self.total - self.flips)


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """A variance beside the pairs', `times` over: 2 for the seeds of one run of each recipe, 1/3 for six runs' mean."""

    variance: CommonVariance
    times: float = 1.0

    @property
    def sd(self) -> float:
        """Standard deviation of the common part, in the difference A - B."""
        return math.sqrt(self.times * self.variance.common)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeEstimate:
    """One benchmark: difference, total standard error on `df` degrees, p, interval and smallest difference found."""

    delta: float
    se: float
    df: float
    p: float
    ci: Interval
    mde: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Scores of K runs on the same items: sample variance `raw`, mean squared item difference `psi`, item `flips`."""

    n_runs: int
    raw: float
    psi: float
    flips: float


def flip_variance(psi: float, n: int) -> float:
    """Variance of a score from item flips alone, ``psi / (2 n)``; psi: discordant share of two seeds' runs."""
    return psi / (2 * n)


def spread(values: FloatArray, weights: FloatArray | None = None, clusters: IntArray | None = None) -> Spread:
    """How far the runs of one recipe lie apart. values: shape (K, n), K >= 2; weights and cluster codes: shape (n,).

    psi is the mean over pairs of runs and items of the squared difference, for right-or-wrong items the share on which
    two runs disagree. Where items share clusters or weigh differently, flips are summed as the paired error sums them.
    """
    k, n = values.shape
    scores = np.average(values, axis=1, weights=weights)
    raw = float(np.var(scores, ddof=1))
    psi = float(2 * np.var(values, axis=0, ddof=1).mean())
    if weights is None and clusters is None:
        return Spread(n_runs=k, raw=raw, psi=psi, flips=flip_variance(psi, n))
    share = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    influences = share * (values - scores[:, None])
    if clusters is not None:
        _, codes = np.unique(clusters, return_inverse=True)
        influences = np.stack([np.bincount(codes, weights=row) for row in influences])
    n_clusters = influences.shape[1]
    flips = float(np.var(influences, axis=0, ddof=1).sum()) * n_clusters / max(1, n_clusters - 1)
    return Spread(n_runs=k, raw=raw, psi=psi, flips=flips)


def both_arms(a: Spread, b: Spread) -> tuple[CommonVariance, float]:
    """The variance of the difference of two arms' mean scores, as (variance of one run, how many times it counts).

    Whatever the arms' own variances, the mean is right; the degrees are Satterthwaite's for arms that spread alike, 4
    for three runs of each.
    """
    shares = 1 / a.n_runs, 1 / b.n_runs
    times = sum(shares)
    df = times**2 / sum(share**2 / (s.n_runs - 1) for share, s in zip(shares, (a, b), strict=True))

    def mean(x: float, y: float) -> float:
        return (shares[0] * x + shares[1] * y) / times

    return CommonVariance(total=mean(a.raw, b.raw), flips=mean(a.flips, b.flips), df=df), times


def moderated(own: Sequence[CommonVariance], prior_df: float = PRIOR_DF) -> list[CommonVariance]:
    """Variances of several benchmarks, each drawn towards their mean: few seeds say little about one variance.

    The prior of a benchmark is its own flips and the mean of the common parts. It counts for `prior_df` degrees, but
    never for more than the other benchmarks have together: one benchmark alone stays as it is. Source of the shrinkage:
    Smyth 2004.
    """
    mean = float(np.mean([v.common for v in own])) if own else 0.0
    all_df = sum(v.df for v in own)
    found = []
    for v in own:
        extra = min(prior_df, all_df - v.df)
        df = v.df + extra
        total = (extra * (v.flips + mean) + v.df * v.total) / df
        found.append(CommonVariance(total=total, flips=v.flips, df=df))
    return found


def extrapolated(variance: CommonVariance, tau: float = TAU) -> CommonVariance:
    """The variance for another scale than the study's: sigma times exp(.8416 tau), its upper 80 % bound."""
    factor = math.exp(_Z80 * tau) ** 2
    return CommonVariance(total=variance.total * factor, flips=variance.flips, df=variance.df)


def total_error(se_pair: float, added: Sequence[Added], pair_df: float = math.inf) -> tuple[float, float]:
    """Standard error ``sqrt(se_pair^2 + sum times * common)`` and its Satterthwaite degrees of freedom.

    The degrees hold each added variance whole, flips and all, since that is what was estimated.
    """
    variance = se_pair**2 + sum(a.times * a.variance.common for a in added)
    uncertain = sum((a.times * a.variance.total) ** 2 / a.variance.df for a in added) + se_pair**4 / pair_df
    return math.sqrt(variance), variance**2 / uncertain if uncertain > 0 else math.inf


def recipe_estimate(
    delta: float, se_pair: float, added: Sequence[Added], *, pair_df: float = math.inf, alpha: float = 0.05
) -> RecipeEstimate:
    """The test of a difference under its whole error; `pair_df`: degrees of freedom of the paired error."""
    se, df = total_error(se_pair, added, pair_df)
    p, ci = t_test_p(delta, se, df + 1), t_interval(delta, se, df, 1 - alpha)
    if p is None or ci is None:
        raise ValueError("a standard error and degrees of freedom above 0 give a p and an interval")
    return RecipeEstimate(delta=delta, se=se, df=df, p=p, ci=ci, mde=mde_from_se(se, df, alpha))


def seeds_settling(
    target: float, *, steady: float, flips: float, seed: CommonVariance, alpha: float = 0.05
) -> int | None:
    """Runs of each recipe that find a true difference `target` four times in five; None where no number does.

    steady: variance of the difference that stays however many runs there are (which items were drawn, environments);
    `flips`: variance of one run's score from item flips on these items, which averages out as the seeds' common part
    does. At least 2, at most 1,000. The degrees are those of so many new runs.
    """

    def found(k: int) -> float:
        variance = steady + 2 * (flips + seed.common) / k
        uncertain = (2 * (flips + seed.common) / k) ** 2 / (2 * (k - 1))
        df = variance**2 / uncertain if uncertain > 0 else math.inf
        return mde_from_se(math.sqrt(variance), df, alpha)

    low, high = 2, MOST_SEEDS
    if found(high) > target:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if found(middle) <= target else (middle + 1, high)
    return low
