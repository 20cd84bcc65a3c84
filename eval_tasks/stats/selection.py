"""Scores of many checkpoints on the same items -> the best, how much of it is luck, and which cannot be told from it.

Higher is better here. The best of many equal checkpoints looks better than it is; what it is to be expected to score on
new items is its score drawn towards the mean by the share of the spread that is noise (Efron and Morris 1975). The set
that holds the best is that of multiple comparisons with the best (Hsu 1984), with Bonferroni's quantile, since pairs of
checkpoints are unequally correlated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from eval_tasks.digests import digest_parts
from eval_tasks.errors import UserError
from eval_tasks.stats.influence import FloatArray, IntArray, cluster_sums, pooled_influences
from eval_tasks.stats.intervals import t_quantile


@dataclass(frozen=True, slots=True, kw_only=True)
class BestOfMany:
    """The best of K checkpoints, `best` its index. Shapes: scores, shrunk, in_set (K,).

    `noise_sd`: item noise of one checkpoint's score beside the others'; what all share has no part in it. `optimism`:
    how much the best of K equal ones would look better than it is. `spread_sd`: of the true scores. `shrunk`: scores to
    be expected on new items. `in_set`: not shown to be worse than the best of the others, at `alpha` for all at once.
    """

    best: int
    scores: FloatArray
    noise_sd: float
    optimism: float
    spread_sd: float
    shrunk: FloatArray
    in_set: npt.NDArray[np.bool_]


def expected_maximum(k: int) -> float:
    """Mean of the largest of k independent standard normals: E = integral of x k phi(x) Phi(x)^(k - 1) dx."""
    x = np.linspace(-9, 9, 3_601)
    density = k * np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * special.ndtr(x) ** (k - 1)
    return float(np.trapezoid(x * density, x))


def optimism(k: int, noise_sd: float) -> float:
    """How much the best of k equal checkpoints looks better than it is, when the noise of each score is `noise_sd`."""
    return expected_maximum(k) * noise_sd


def best_of_many(
    values: FloatArray, weights: FloatArray | None = None, clusters: IntArray | None = None, *, alpha: float = 0.05
) -> BestOfMany:
    """values: shape (checkpoints, items), higher is better, the same items in each row; two or more of both.

    weights: shape (items,) or None for a plain mean. Errors are those of item pairs, CR1 where clusters are given.
    """
    k, n = values.shape
    if k < 2 or n < 2:
        raise UserError(f"{k} checkpoints on {n} items; a choice needs two of each")
    parts = [pooled_influences(row, weights) for row in values]
    scores = np.array([score for score, _ in parts])
    sums = np.stack([cluster_sums(influences, clusters) for _, influences in parts])
    n_units = sums.shape[1]
    if n_units < 2:
        raise UserError("all items are of one cluster: how far scores vary by chance cannot be seen")
    gram = sums @ sums.T * (n_units / (n_units - 1))
    own = np.diag(gram)
    pair_variance = np.maximum(own[:, None] + own[None, :] - 2 * gram, 0.0)
    noise = float(pair_variance.sum() / (k * (k - 1)) / 2)
    spread = float(scores.var(ddof=1))
    best = int(np.argmax(scores))
    return BestOfMany(
        best=best,
        scores=scores,
        noise_sd=math.sqrt(noise),
        optimism=optimism(k, math.sqrt(noise)),
        spread_sd=math.sqrt(max(0.0, spread - noise)),
        shrunk=_shrunk(scores, noise, spread),
        in_set=_not_worse(scores, np.sqrt(pair_variance), n_units - 1, alpha),
    )


def _shrunk(scores: FloatArray, noise: float, spread: float) -> FloatArray:
    """mean + B (score - mean), B = 1 - (K - 3) / (K - 1) noise / spread, at least 0; K of 3 and less: without K."""
    k, mean = len(scores), scores.mean()
    if spread <= 0:
        return np.full(k, mean)
    factor = (k - 3) / (k - 1) if k > 3 else 1.0
    kept = max(0.0, 1 - factor * noise / spread)
    return np.asarray(mean + kept * (scores - mean), dtype=np.float64)


def _not_worse(scores: FloatArray, errors: FloatArray, df: int, alpha: float) -> npt.NDArray[np.bool_]:
    """Whether each score lies within the critical difference of every better one."""
    critical = t_quantile(1 - alpha / (len(scores) - 1), df)
    behind = scores[None, :] - scores[:, None]
    return np.asarray(np.all(behind <= critical * errors + 1e-15, axis=1))


def halves(units: Sequence[str], strata: Sequence[str | None], *, salt: str = "") -> npt.NDArray[np.bool_]:
    """Which items belong to the half to select on; the others are to confirm on. Shape (items,).

    units: an item's id, or the name of its cluster: items of one unit stay together, in the stratum of the first of
    them. By a digest of the unit, so that the same items give the same halves in any order, and within each stratum
    alternately, so that the halves are alike. An item that comes or goes may move others of its stratum.
    """
    stratum = dict(zip(reversed(units), reversed(strata), strict=True))
    order = sorted(stratum, key=lambda unit: (stratum[unit] or "", digest_parts([salt, unit])))
    first = set(order[::2])
    return np.array([unit in first for unit in units], dtype=np.bool_)
