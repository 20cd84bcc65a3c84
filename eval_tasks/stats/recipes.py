"""Differences of checkpoints and a seed study -> do the recipes differ? Knows no run and no store.

Two checkpoints may differ by more than their items can explain by chance, and training again with another seed would
still turn the difference round. Here the seed's variance joins the pairs' (statistics of two arms trained apart).
Item flips between seeds are in the paired error already, so only the common part of the seed's variance is added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eval_tasks.stats.influence import FloatArray
from eval_tasks.stats.intervals import Interval, t_interval
from eval_tasks.stats.paired import t_test_p
from eval_tasks.stats.power import mde_from_se

PRIOR_DF = 6.0
"""Degrees of freedom that the benchmarks' shared seed variance counts for beside each one's own."""

TAU = 0.5
"""Standard deviation of the log-error of a seed's sigma that was measured at another scale."""

_Z80 = 0.8416


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedVariance:
    """Moderated seed variance of one benchmark's score: `total` with `df` degrees, of which `flips` are item flips."""

    total: float
    flips: float
    df: float

    @property
    def common(self) -> float:
        """What all items share: the part that the paired error does not hold."""
        return max(0.0, self.total - self.flips)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeEstimate:
    """One benchmark: difference, total standard error on `df` degrees, p, interval and smallest difference found."""

    delta: float
    se: float
    df: float
    p: float
    ci: Interval
    mde: float


def flip_variance(psi: float, n: int) -> float:
    """Variance of a score from item flips alone, ``psi / (2 n)``; psi: discordant share of two seeds' runs."""
    return psi / (2 * n)


def moderated(
    raw: Sequence[float], flips: Sequence[float], *, n_seeds: int, prior_df: float = PRIOR_DF
) -> list[SeedVariance]:
    """Seed variances of several benchmarks, each drawn towards their mean: few seeds say little about one variance.

    raw: sample variance of each benchmark's score over the seeds. The prior of a benchmark is its own flips and the
    mean of the common parts. Source of the shrinkage: Smyth 2004. `n_seeds` is 2 or more.
    """
    own, idio = np.asarray(raw, dtype=np.float64), np.asarray(flips, dtype=np.float64)
    prior = idio + np.maximum(0.0, own - idio).mean()
    df = n_seeds - 1 + prior_df
    total = (prior_df * prior + (n_seeds - 1) * own) / df
    return [SeedVariance(total=float(t), flips=float(f), df=df) for t, f in zip(total, idio, strict=True)]


def extrapolated(variance: SeedVariance, tau: float = TAU) -> SeedVariance:
    """The variance for another scale than the study's: sigma times exp(.8416 tau), its upper 80 % bound."""
    factor = math.exp(_Z80 * tau) ** 2
    return SeedVariance(total=variance.total * factor, flips=variance.flips, df=variance.df)


def recipe_estimate(
    delta: float, se_pair: float, seed: SeedVariance, *, n_arms: int = 2, other: float = 0.0, alpha: float = 0.05
) -> RecipeEstimate:
    """The test of two recipes, one run each: ``V = se_pair^2 + n_arms * common + other``.

    `other`: variance of engine and environment, taken as known. Satterthwaite's degrees hold the seed's whole variance,
    since that is what was estimated.
    """
    variance = se_pair**2 + n_arms * seed.common + other
    se = math.sqrt(variance)
    uncertain = (n_arms * seed.total) ** 2 / seed.df
    df = variance**2 / uncertain if uncertain > 0 else math.inf
    p, ci = t_test_p(delta, se, df + 1), t_interval(delta, se, df, 1 - alpha)
    if p is None or ci is None:
        raise ValueError("a standard error and degrees of freedom above 0 give a p and an interval")
    return RecipeEstimate(delta=delta, se=se, df=df, p=p, ci=ci, mde=mde_from_se(se, df, alpha))


def multi_seed(a: FloatArray, b: FloatArray) -> tuple[float, float, float]:
    """Scores of several seeds per arm -> difference of means, its standard error and Welch's degrees of freedom.

    The seed is the unit here, whatever the number of items: item noise is in each score already. Two or more per arm.
    """
    parts = [float(np.var(x, ddof=1)) / len(x) for x in (a, b)]
    variance = sum(parts)
    bottom = sum(part**2 / (len(x) - 1) for part, x in zip(parts, (a, b), strict=True))
    df = variance**2 / bottom if bottom > 0 else float(len(a) + len(b) - 2)
    return float(np.mean(a) - np.mean(b)), math.sqrt(variance), df
