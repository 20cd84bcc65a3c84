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

FEW_CLUSTERS = 50
"""Below this number of clusters a paired test takes CR2."""

LARGE_SHARE = 0.05
"""A cluster with more than this share of the items makes a paired test take CR2, however many clusters there are."""


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


def within_strata(influences: FloatArray, strata: IntArray) -> tuple[FloatArray, int]:
    """Influences whose squares sum to the stratified variance ``sum_h (n_h / n)^2 s_h^2 / n_h``, and the degrees n - H.

    Where a stratum's share of the items is fixed (a subject of MMLU), the spread between strata is no error: each
    influence is taken from its stratum's mean, times ``sqrt(n_h / (n_h - 1))``. A stratum of one item has no spread of
    its own and borrows that over all items. Valid for this mixture of strata only. Source: Cochran 1977, chapter 5.
    """
    _, codes = np.unique(strata, return_inverse=True)
    size = np.bincount(codes)
    centred = influences - (np.bincount(codes, weights=influences) / size)[codes]
    centred *= np.sqrt(size / np.maximum(size - 1, 1))[codes]
    alone = size[codes] == 1
    if alone.any() and len(influences) > 1:
        spread = float(np.sqrt(influences @ influences / (len(influences) - 1)))
        centred[alone] = np.where(influences[alone] < 0, -spread, spread)
    return centred, max(len(influences) - len(size), 1)


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
    # -a_g a_h beside it, a_g^2 = share_g^2 / (1 - share_g). Its trace is 1, so that no matrix need be built. Equal
    # clusters give G - 1, and two clusters 1: less is rounding.
    adjusted = share**2 / (1 - share)
    df = 1 / float(share @ share + adjusted.sum() ** 2 - adjusted @ adjusted)
    return se, max(1.0, df)


def clustered_error(influences: FloatArray, clusters: IntArray) -> tuple[float | None, float, str]:
    """Standard error of an unweighted mean, its degrees of freedom and the method's name, CR1 or CR2.

    CR2 with Satterthwaite degrees for fewer than `FEW_CLUSTERS` clusters, and where one of them holds more than
    `LARGE_SHARE` of the items: CR1 is then too small, and its G - 1 degrees too many. Else CR1 on G - 1.
    """
    counts = np.unique(clusters, return_counts=True)[1]
    if len(counts) > 1 and (len(counts) < FEW_CLUSTERS or counts.max() > LARGE_SHARE * len(influences)):
        se, df = standard_error_cr2(influences, clusters)
        return se, df or 0.0, "CR2"
    se, n_clusters = standard_error(influences, clusters)
    return se, n_clusters - 1, "CR1"


def is_zero(se: float, scale: float) -> bool:
    """Whether `se` is no more than the rounding noise of numbers as large as `scale`."""
    return se <= _RELATIVE_ZERO * max(abs(scale), 1e-300)
