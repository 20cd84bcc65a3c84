"""Differences on several benchmarks, with weights fixed beforehand -> one difference with its error.

The influences of a benchmark's items are weighted and summed within clusters across benchmarks: a passage that two
benchmarks share moves both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eval_tasks.stats.influence import FloatArray, IntArray, standard_error
from eval_tasks.stats.paired import t_test_p


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One benchmark: its weight, difference and item influences; `clusters` are codes shared by all components."""

    weight: float
    delta: float
    influences: FloatArray
    clusters: IntArray | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompositeEstimate:
    """A weighted difference. `df` are degrees of freedom of its t interval."""

    delta: float
    se: float | None
    df: float
    p: float | None


def composite(components: Sequence[Component]) -> CompositeEstimate:
    """Weighted sum of differences. CR1 on G - 1 where any component is clustered, else Welch-Satterthwaite."""
    delta = float(sum(c.weight * c.delta for c in components))
    if any(c.clusters is not None for c in components):
        se, n_clusters = standard_error(_weighted(components), _joint_clusters(components))
        return CompositeEstimate(delta=delta, se=se, df=n_clusters - 1, p=t_test_p(delta, se, n_clusters))
    errors = [standard_error(c.weight * c.influences) for c in components]
    if any(se is None for se, _ in errors):
        return CompositeEstimate(delta=delta, se=None, df=0, p=None)
    variances = np.array([(se or 0.0) ** 2 for se, _ in errors])
    degrees = np.array([n - 1 for _, n in errors], dtype=np.float64)
    total = float(variances.sum())
    df = total**2 / float(np.sum(variances**2 / degrees)) if total > 0 else float(degrees.min())
    se = float(np.sqrt(total))
    return CompositeEstimate(delta=delta, se=se, df=df, p=t_test_p(delta, se, df + 1))


def _weighted(components: Sequence[Component]) -> FloatArray:
    return np.concatenate([c.weight * c.influences for c in components])


def _joint_clusters(components: Sequence[Component]) -> IntArray:
    """Codes over all components' items; an item without a cluster has a code of its own, below zero."""
    codes, alone = [], 0
    for component in components:
        n = len(component.influences)
        if component.clusters is not None:
            codes.append(component.clusters.astype(np.int64))
            continue
        codes.append(-1 - np.arange(alone, alone + n, dtype=np.int64))
        alone += n
    return np.concatenate(codes)
