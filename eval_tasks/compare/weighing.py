"""Several tested benchmarks and a rule's weights -> the composite's own test, which the rule decides on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eval_tasks.compare.primary import Primary
from eval_tasks.compare.testing import Tested
from eval_tasks.records import DecisionRule, PairedTest
from eval_tasks.records.verdict import DEFAULT_MARGIN, Compatibility
from eval_tasks.stats.composite import Component, composite
from eval_tasks.stats.equivalence import tost_p
from eval_tasks.stats.influence import IntArray
from eval_tasks.stats.intervals import Interval, t_interval
from eval_tasks.stats.item_scores import cluster_codes
from eval_tasks.stats.paired import t_test_p
from eval_tasks.stats.power import mde_from_se
from eval_tasks.stats.recipes import Added, total_error


def composite_primary(chosen: Sequence[Tested], rule: DecisionRule, added: Sequence[Added] = ()) -> Primary | None:
    """The weighted difference of several benchmarks, with its error from item influences and joint clusters.

    added: variances of the composite itself beside the items'. Its components' own would not add up to them.
    """
    weights = list(rule.components.values())
    codes = _joint_codes(chosen)
    components = [
        Component(weight=w, delta=t.estimate.delta, influences=t.estimate.influences, clusters=c)
        for w, t, c in zip(weights, chosen, codes, strict=True)
        if t.estimate is not None
    ]
    found = composite(components)
    if found.se is None or found.p is None:
        return None
    se, df = total_error(found.se, added, found.df) if added else (found.se, found.df)
    p = max(found.p, t_test_p(found.delta, se, df + 1) or 0.0)
    interval, ci95 = (
        _shifted(
            _hull(t_interval(found.delta, found.se, found.df, level), t_interval(found.delta, se, df, level)),
            weights,
            chosen,
        )
        for level in (1 - rule.alpha, 0.95)
    )
    if interval is None:
        return None
    unit = chosen[0].test.unit
    margin = rule.margin if rule.margin > 0 else DEFAULT_MARGIN if unit == "fraction" else 0.0
    missing = any(t.pairs is not None and t.pairs.n_missing > 0 for t in chosen)
    n_pairs = sum(t.test.n_pairs for t in chosen)
    mde = max(mde_from_se(found.se, found.df, rule.alpha), mde_from_se(se, df, rule.alpha))
    test = PairedTest(
        benchmark=_name(weights, chosen),
        metric=rule.metric,
        compatibility=_weakest(chosen),
        method=f"composite of item influences, t({df:.0f})",
        n_pairs=n_pairs,
        n_attempted=sum(t.test.n_attempted for t in chosen),
        score_a=sum(w * (t.test.score_a or 0.0) for w, t in zip(weights, chosen, strict=True)),
        score_b=sum(w * (t.test.score_b or 0.0) for w, t in zip(weights, chosen, strict=True)),
        delta=found.delta,
        se=se,
        ci95=ci95,
        p=p,
        q=p,
        mde=mde or None,
        n_needed=int(np.ceil(n_pairs * (mde / margin) ** 2)) if margin > 0 and mde > 0 and not added else None,
        higher_is_better=chosen[0].test.higher_is_better,
        unit=unit,
        contamination="see the components",
        primary=True,
        adjusted_by="none",
    )
    return Primary(
        test=test,
        interval=interval,
        q=p,
        equivalent=margin > 0
        and not missing
        and max(tost_p(found.delta, found.se, found.df, margin), tost_p(found.delta, se, df, margin)) <= rule.alpha,
        missing_could_undo=missing and interval[0] <= 0 <= interval[1],
        margin=margin,
    )


def _hull(a: Interval | None, b: Interval | None) -> Interval | None:
    return None if a is None or b is None else (min(a[0], b[0]), max(a[1], b[1]))


def _name(weights: Sequence[float], chosen: Sequence[Tested]) -> str:
    """What is added up, ``0.75 x + 0.25 y``; beyond four, their number (the rule has the weights)."""
    if len(chosen) > 4:
        return f"the weighted mean of {len(chosen)} benchmarks"
    return " + ".join(f"{w:g} {t.test.benchmark}" for w, t in zip(weights, chosen, strict=True))


def _joint_codes(chosen: Sequence[Tested]) -> list[IntArray | None]:
    """Cluster codes over all components: the same cluster name in two benchmarks is the same cluster."""
    names = [t.pairs.clusters for t in chosen if t.pairs is not None and t.pairs.clusters is not None]
    if not names:
        return [None for _ in chosen]
    codes = cluster_codes(pa.concat_arrays(names))
    result: list[IntArray | None] = []
    start = 0
    for t in chosen:
        if t.pairs is None or t.pairs.clusters is None:
            result.append(None)
            continue
        result.append(codes[start : start + len(t.pairs.clusters)])
        start += len(t.pairs.clusters)
    return result


def _shifted(interval: Interval | None, weights: Sequence[float], chosen: Sequence[Tested]) -> Interval | None:
    """An interval with each component's missing items at their worst and best, weighted."""
    if interval is None:
        return None
    low, high = interval
    for weight, t in zip(weights, chosen, strict=True):
        if t.pairs is None or t.estimate is None or t.pairs.n_missing == 0 or t.pairs.gap is None:
            continue
        n, total = len(t.pairs.a), len(t.pairs.a) + t.pairs.n_missing
        low += weight * min(0.0, (n * t.estimate.delta + t.pairs.gap[0]) / total - t.estimate.delta)
        high += weight * max(0.0, (n * t.estimate.delta + t.pairs.gap[1]) / total - t.estimate.delta)
    return low, high


def _weakest(chosen: Sequence[Tested]) -> Compatibility:
    order: tuple[Compatibility, ...] = ("SCORE", "PAIRED", "PARTIAL", "NONE")
    return max((t.test.compatibility for t in chosen), key=order.index)
