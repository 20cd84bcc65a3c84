"""Values -> an estimate and each item's influence on it; influences -> a standard error, clustered or not.

Every estimate of this package is a mean or a ratio of sums. Its error is the spread of the items' influences,
summed within clusters first. With weights of 1 and no clusters this is the textbook s / sqrt(n).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_RELATIVE_ZERO = 1e-12


def pooled_influences(values: FloatArray, weights: FloatArray | None = None) -> tuple[float, FloatArray]:
    """sum(v * w) / sum(w) and the influence of each item on it, ``w_i (v_i - r) / sum(w)``; they sum to zero.

    `values` and `weights` have shape (n,), n >= 1 and a positive sum of weights.
    """
    if weights is None:
        score = float(values.mean())
        return score, (values - score) / len(values)
    total = float(weights.sum())
    score = float(values @ weights) / total
    return score, weights * (values - score) / total


def cluster_sums(influences: FloatArray, clusters: IntArray | None) -> FloatArray:
    """Influences summed within clusters, shape (number of clusters,). Without clusters each item is its own."""
    if clusters is None:
        return influences
    _, codes = np.unique(clusters, return_inverse=True)
    return np.bincount(codes, weights=influences).astype(np.float64)


def standard_error(influences: FloatArray, clusters: IntArray | None = None) -> tuple[float | None, int]:
    """CR1 standard error, ``sqrt(G / (G - 1) * sum_c (sum_{i in c} influence_i)^2)``, and G, the number of clusters.

    None when there is one cluster (or one item): a spread needs two.
    """
    sums = cluster_sums(influences, clusters)
    n_clusters = len(sums)
    if n_clusters < 2:
        return None, n_clusters
    se = float(np.sqrt(n_clusters / (n_clusters - 1) * (sums @ sums)))
    return se, n_clusters


def standard_error_cr2(influences: FloatArray, clusters: IntArray) -> tuple[float | None, float | None]:
    """CR2 standard error of an unweighted mean and its Satterthwaite degrees of freedom (Bell and McCaffrey 2002).

    For few or unequal clusters: the sum of a cluster of n_g of n items is divided by sqrt(1 - n_g / n).
    """
    _, codes = np.unique(clusters, return_inverse=True)
    share = np.bincount(codes) / len(influences)
    if len(share) < 2:
        return None, None
    sums = np.bincount(codes, weights=influences)
    se = float(np.sqrt(np.sum(sums**2 / (1 - share))))
    # The variance estimate is a quadratic form in the items; under independent errors of equal variance its mean and
    # variance follow from the Gram matrix of the adjusted clusters, with share_g = n_g / n: share_g on the diagonal,
    # -a_g a_h beside it, a_g = share_g / sqrt(1 - share_g). Equal clusters give G - 1.
    adjusted = share / np.sqrt(1 - share)
    gram = -np.outer(adjusted, adjusted)
    np.fill_diagonal(gram, share)
    df = float(np.trace(gram) ** 2 / np.sum(gram**2))
    return se, df


def is_zero(se: float, scale: float) -> bool:
    """Whether `se` is no more than the rounding noise of numbers as large as `scale`."""
    return se <= _RELATIVE_ZERO * max(abs(scale), 1e-300)
