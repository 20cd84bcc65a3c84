"""Right and wrong answers of many runs -> item parameters of the two-parameter logistic model, and abilities.

P(right) = 1 / (1 + exp(-(a theta + c))): `a` the discrimination, difficulty b = -c / a, theta standard normal over the
runs of the calibration. Marginal maximum likelihood by EM (Bock and Aitkin 1981) on a fixed grid; discriminations have
a normal prior whose mean and spread are estimated from all items together, so that few runs give no wild ones. An
ability is Warm's weighted likelihood estimate (1989), which is finite for all right and all wrong.

No bit depends on the number of threads, and none of the weights on the order of the runs: what goes into a matrix
product is rounded to so few bits that adding it up is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from eval_tasks.errors import DataError
from eval_tasks.stats.influence import FloatArray, IntArray, cluster_sums
from eval_tasks.stats.intervals import Interval, t_interval

BoolArray = npt.NDArray[np.bool_]

NODES = np.linspace(-6.0, 6.0, 241)
"""Quadrature nodes. Narrow, since with thousands of items a run's ability is known to some hundredths."""

ROUNDS = 2_000
SETTLED = 1e-4

_INTERCEPT_SD = 4.0
_SMALLEST_SPREAD = 0.1
_NEWTON_STEPS = 2
_LARGEST_STEP = 1.0
_FARTHEST = 30.0
_BITS = 52


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration2PL:
    """Parameters by item, shape (items,), and abilities by run, shape (runs,).

    `discrimination_se`, `intercept_se` and their `covariance` take runs as independent. `ability`, `ability_sd`: mean
    and standard deviation of each run's posterior. `rounds`: of EM.
    """

    discrimination: FloatArray
    intercept: FloatArray
    discrimination_se: FloatArray
    intercept_se: FloatArray
    covariance: FloatArray
    ability: FloatArray
    ability_sd: FloatArray
    rounds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AbilityEstimate:
    """theta with its error. `used`: which of the items given took part, shape (items,); `influence`: of those on theta.

    `se`: the larger of the model's and of what the items' residuals show, summed within clusters; `df` its degrees.
    `gain`: by how much more items the plain score would need for the same precision, as far as the model holds.
    """

    theta: float
    se: float
    df: float
    n: int
    gain: float
    used: BoolArray
    influence: FloatArray

    @property
    def ci95(self) -> Interval | None:
        """t interval; None with a single cluster."""
        return t_interval(self.theta, self.se, self.df)


def calibrate_2pl(right: FloatArray, seen: BoolArray | None = None) -> Calibration2PL:
    """right: 0 or 1, shape (runs, items), 0 where not `seen` (None: all are). No item is all right or all wrong.

    Raises DataError when EM has not settled after `ROUNDS` rounds.
    """
    whole = seen is None or bool(seen.all())
    taken = np.ones_like(right) if seen is None else seen.astype(np.float64)
    wrong = taken - right
    n_items = right.shape[1]
    log_weight = -(NODES**2) / 2 - math.log(float(np.exp(-(NODES**2) / 2).sum()))
    share = (right.sum(axis=0) + 0.5) / (taken.sum(axis=0) + 1)
    a, c = np.ones(n_items), special.logit(share)
    center, spread = 1.0, 1.0
    moved, rounds = math.inf, 0
    while moved >= SETTLED:
        if rounds == ROUNDS:
            raise DataError(
                f"the calibration has not settled after {ROUNDS} rounds (last step {moved:.2g}): too few runs or "
                "items, or runs that hardly differ"
            )
        rounds += 1
        posterior = _posterior(right, wrong, a, c, log_weight)
        hits = posterior.T @ right
        tries = posterior.sum(axis=0)[:, None] if whole else posterior.T @ taken
        new_a, new_c = a, c
        for _ in range(_NEWTON_STEPS):
            new_a, new_c, curvature = _newton(new_a, new_c, hits, tries, center, spread)
        # On the scale on which the abilities have mean 0 and variance 1: left to itself the prior of many items would
        # shrink all discriminations together and draw the abilities of few runs apart.
        middle, width = _moments(posterior)
        new_a, new_c = new_a * width, new_c + new_a * middle
        moved = max(float(np.abs(new_a - a).max()), float(np.abs(new_c - c).max()))
        a, c = new_a, new_c
        center = float(a.mean())
        spread = max(_SMALLEST_SPREAD, math.sqrt(float(((a - center) ** 2 + _inverse(*curvature)[0]).mean())))
    posterior = _posterior(right, wrong, a, c, log_weight)
    ability = (posterior * NODES).sum(axis=1)
    covariance = _inverse(*_observed(curvature, posterior, ability, right, taken, hits, tries, a, c))
    variance = (posterior * NODES**2).sum(axis=1) - ability**2
    return Calibration2PL(
        discrimination=a,
        intercept=c,
        discrimination_se=np.sqrt(covariance[0]),
        intercept_se=np.sqrt(covariance[2]),
        covariance=covariance[1],
        ability=ability,
        ability_sd=np.sqrt(np.maximum(variance, 0.0)),
        rounds=rounds,
    )


def _moments(posterior: FloatArray) -> tuple[float, float]:
    """Mean and standard deviation of the abilities of all runs."""
    density = posterior.sum(axis=0) / posterior.sum()
    middle = float((density * NODES).sum())
    return middle, math.sqrt(float((density * (NODES - middle) ** 2).sum()))


def _posterior(
    right: FloatArray, wrong: FloatArray, a: FloatArray, c: FloatArray, log_weight: FloatArray
) -> FloatArray:
    """Of each run over the nodes, shape (runs, nodes), rounded so that sums over runs are exact."""
    n_runs, n_items = right.shape
    z = NODES[:, None] * a + c
    log_right = _summable(np.maximum(-np.logaddexp(0, -z), -60.0), largest=64, terms=n_items)
    log_wrong = _summable(np.maximum(-np.logaddexp(0, z), -60.0), largest=64, terms=n_items)
    log_likelihood = right @ log_right.T + wrong @ log_wrong.T
    weighed = log_likelihood + log_weight
    density = np.exp(weighed - weighed.max(axis=1, keepdims=True))
    return _summable(density / density.sum(axis=1, keepdims=True), largest=1, terms=n_runs)


def _summable(values: FloatArray, *, largest: int, terms: int) -> FloatArray:
    """Rounded to a power of two so small that `terms` of them, none above `largest`, are added without any error."""
    quantum = 2.0 ** (math.ceil(math.log2(largest * max(terms, 1))) - _BITS)
    return np.asarray(np.rint(values / quantum) * quantum, dtype=np.float64)


Symmetric = tuple[FloatArray, FloatArray, FloatArray]
"""By item, the entries aa, ac and cc of a symmetric matrix over its two parameters."""


def _newton(
    a: FloatArray, c: FloatArray, hits: FloatArray, tries: FloatArray, center: float, spread: float
) -> tuple[FloatArray, FloatArray, Symmetric]:
    """One step of each item's own regression on the nodes, and how sharply the likelihood bends there."""
    p = special.expit(NODES[:, None] * a + c)
    residual, weight = hits - tries * p, tries * p * (1 - p)
    slope_a = np.einsum("q,qj->j", NODES, residual) - (a - center) / spread**2
    slope_c = residual.sum(axis=0) - c / _INTERCEPT_SD**2
    h_aa = np.einsum("q,qj->j", NODES**2, weight) + 1 / spread**2
    h_ac = np.einsum("q,qj->j", NODES, weight)
    h_cc = weight.sum(axis=0) + 1 / _INTERCEPT_SD**2
    v_aa, v_ac, v_cc = _inverse(h_aa, h_ac, h_cc)
    step_a, step_c = v_aa * slope_a + v_ac * slope_c, v_ac * slope_a + v_cc * slope_c
    shorter = np.minimum(1.0, _LARGEST_STEP / np.maximum(np.maximum(np.abs(step_a), np.abs(step_c)), 1e-300))
    return a + shorter * step_a, c + shorter * step_c, (h_aa, h_ac, h_cc)


def _inverse(aa: FloatArray, ac: FloatArray, cc: FloatArray) -> Symmetric:
    determinant = aa * cc - ac**2
    return cc / determinant, -ac / determinant, aa / determinant


def _observed(
    complete: Symmetric,
    posterior: FloatArray,
    ability: FloatArray,
    right: FloatArray,
    taken: FloatArray,
    hits: FloatArray,
    tries: FloatArray,
    a: FloatArray,
    c: FloatArray,
) -> Symmetric:
    """The information on an item that is left when abilities are not known but estimated (Louis 1982).

    What is lost is the variance of the item's score vector (x - P) (theta, 1) over each run's posterior.
    """
    p = special.expit(NODES[:, None] * a + c)
    squares = hits * (1 - p) ** 2 + (tries - hits) * p**2
    # Factors of 22 bits each: their products, and 241 of them added, are exact.
    coarse, theta = _grid(p), _grid(posterior * NODES)
    mean_a = right * ability[:, None] - taken * (theta @ coarse)
    mean_c = right - taken * (_grid(posterior) @ coarse)
    lost = (
        np.einsum("q,qj->j", NODES**2, squares) - (mean_a * mean_a).sum(axis=0),
        np.einsum("q,qj->j", NODES, squares) - (mean_a * mean_c).sum(axis=0),
        squares.sum(axis=0) - (mean_c * mean_c).sum(axis=0),
    )
    aa, ac, cc = (whole - part for whole, part in zip(complete, lost, strict=True))
    sound = (aa > 0) & (cc > 0) & (aa * cc > ac**2)
    return tuple(np.where(sound, kept, whole) for kept, whole in zip((aa, ac, cc), complete, strict=True))  # type: ignore[return-value]


def _grid(values: FloatArray) -> FloatArray:
    return np.asarray(np.rint(values * 2.0**22) / 2.0**22, dtype=np.float64)


def reliability(right: FloatArray, seen: BoolArray) -> float:
    """The share of the spread of the runs' scores that is no noise of items: 1 - noise / spread, as KR-20 has it.

    Taken before anything is fitted, since a fit finds some ability in pure noise. At least 0; 0 where no score differs.
    """
    n = seen.sum(axis=1)
    items = np.divide(right.sum(axis=0), seen.sum(axis=0), out=np.zeros(right.shape[1]), where=seen.any(axis=0))
    beside = np.where(seen, right - items, 0.0)
    score = beside.sum(axis=1) / n
    noise = ((beside - np.where(seen, score[:, None], 0.0)) ** 2).sum(axis=1) / (n * (n - 1))
    spread = float(score.var(ddof=1))
    return max(0.0, 1 - float(noise.mean()) / spread) if spread > 0 else 0.0


def ability(
    right: FloatArray, discrimination: FloatArray, intercept: FloatArray, clusters: IntArray | None = None
) -> AbilityEstimate | None:
    """A run's ability from 0 or 1 on items of known parameters, all of shape (items,).

    Items whose discrimination is not positive take no part. None with fewer than two others.
    """
    used = discrimination > 0
    x, a, c = right[used], discrimination[used], intercept[used]
    if len(x) < 2:
        return None

    def slope(theta: float) -> float:
        p = special.expit(a * theta + c)
        information = a * a * p * (1 - p)
        bend = a * information * (1 - 2 * p)
        return float((a * (x - p)).sum() + bend.sum() / (2 * information.sum()))

    theta = float(optimize.brentq(slope, -_FARTHEST, _FARTHEST, xtol=1e-12))
    p = special.expit(a * theta + c)
    spread = p * (1 - p)
    information = float((a * a * spread).sum())
    influence = a * (x - p) / information
    sums = cluster_sums(influence, None if clusters is None else clusters[used])
    seen = math.sqrt(len(sums) / max(len(sums) - 1, 1) * float((sums * sums).sum()))
    return AbilityEstimate(
        theta=theta,
        se=max(seen, 1 / math.sqrt(information)),
        df=len(sums) - 1,
        n=len(x),
        gain=information * float(spread.sum()) / float((a * spread).sum()) ** 2,
        used=used,
        influence=influence,
    )


def ability_difference(
    a: AbilityEstimate, b: AbilityEstimate, clusters: IntArray | None = None
) -> tuple[float, float, Interval | None]:
    """theta of A minus theta of B on the same items, its standard error from the item pairs, and the 95 % interval.

    clusters: of all items given to `ability`, shape (items,).
    """
    sums = cluster_sums(a.influence - b.influence, None if clusters is None else clusters[a.used])
    n = len(sums)
    se = math.sqrt(n / max(n - 1, 1) * float((sums * sums).sum()))
    delta = a.theta - b.theta
    return delta, se, t_interval(delta, se, n - 1)
