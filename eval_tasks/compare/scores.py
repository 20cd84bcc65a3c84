"""Paired score tables of some benchmarks -> one Comparison. Pure: knows no store, no file and no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from eval_tasks.compare.pairing import BenchmarkArms
from eval_tasks.compare.sentence import explain
from eval_tasks.compare.testing import DEFAULT_MARGIN, Tested, paired_test
from eval_tasks.compare.verdict import check_rule, decide, rule_tests, with_verdicts
from eval_tasks.errors import UserError
from eval_tasks.records import Comparison, DecisionRule, PairedTest
from eval_tasks.records.verdict import Compatibility
from eval_tasks.stats.composite import Component, composite
from eval_tasks.stats.equivalence import tost_p
from eval_tasks.stats.influence import IntArray
from eval_tasks.stats.intervals import Interval, t_interval
from eval_tasks.stats.item_scores import cluster_codes
from eval_tasks.stats.multiplicity import null_expectation
from eval_tasks.stats.power import mde_from_se


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Who is compared. `exploratory_reason`: why a rule does not bind, such as its late registration; '' when it does.

    `sources_of_variance`: what each source contributed, in words. `notes` go to every test.
    """

    run_a: str
    run_b: str
    label_a: str
    label_b: str
    exploratory_reason: str = ""
    sources_of_variance: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Primary:
    """What a rule decides on: a benchmark's test, or the composite's."""

    test: PairedTest
    interval: Interval
    q: float
    equivalent: bool
    missing_could_undo: bool
    margin: float


def compare_scores(
    arms: Sequence[BenchmarkArms], sides: Sides, *, rule: DecisionRule | None = None, alpha: float = 0.05
) -> Comparison:
    """Test every benchmark, adjust over all of them, and apply the rule.

    Raises NotComparableError when a benchmark's arms share no item, UserError for a rule that does not fit, DataError
    for duplicate items and values that are no number.
    """
    if not 0 < alpha < 0.5:
        raise UserError(f"alpha {alpha}; it lies between 0 and .5")
    if rule is not None:
        check_rule(rule)
    in_rule = rule.components if rule is not None else {}
    margin = rule.margin if rule is not None else 0.0
    tested = [
        paired_test(
            replace(a, notes=(*a.notes, *sides.notes)), alpha=alpha, margin=margin if a.benchmark in in_rule else None
        )
        for a in arms
    ]
    tested = with_verdicts(tested, alpha)
    comparison = Comparison(
        run_a=sides.run_a,
        run_b=sides.run_b,
        label_a=sides.label_a,
        label_b=sides.label_b,
        tests=tuple(t.test for t in tested),
        n_expected_by_chance=null_expectation([_discordant(t) for t in tested if t.estimate is not None], alpha),
        alpha=alpha,
        sources_of_variance=dict(sides.sources_of_variance),
        reason="no primary metric: without a decision rule each benchmark has an exploratory verdict, and the "
        "comparison has none",
    )
    if rule is None:
        return comparison
    return _ruled(comparison, rule, rule_tests(rule, tested), sides)


def _discordant(t: Tested) -> int | None:
    """Discordant items where McNemar's p decides; None where t does."""
    return t.test.n_discordant if t.pairs is not None and t.pairs.clusters is None else None


def _ruled(comparison: Comparison, rule: DecisionRule, chosen: Sequence[Tested], sides: Sides) -> Comparison:
    exploratory = sides.exploratory_reason
    prefix = f"exploratory, since {exploratory}; " if exploratory else ""
    comparison = replace(comparison, rule=rule, exploratory=bool(exploratory))
    stuck = [t for t in chosen if t.estimate is None]
    if stuck:
        names = ", ".join(f"{t.test.benchmark} ({t.test.not_tested})" for t in stuck)
        return replace(
            comparison, reason=f"{prefix}no verdict: rule {rule.name!r} needs {names}, which was not tested."
        )
    primary = _single(chosen[0], rule) if len(chosen) == 1 else _composite(chosen, rule)
    if len(chosen) > 1 and primary is not None:
        comparison = replace(comparison, composite=primary.test)
    if primary is None or primary.test.p is None or primary.test.delta is None:
        reason = (
            f"{prefix}no verdict: the items of rule {rule.name!r} form one cluster, which has no spread to test with."
        )
        return replace(comparison, reason=reason)
    decision = decide(
        rule,
        delta=primary.test.delta,
        p=primary.test.p,
        q=primary.q,
        interval=primary.interval,
        equivalent=primary.equivalent,
        missing_could_undo=primary.missing_could_undo,
        higher_is_better=primary.test.higher_is_better,
    )
    if len(chosen) > 1:
        final = replace(primary.test, verdict=decision.verdict, inconclusive=decision.inconclusive)
        comparison = replace(comparison, composite=final)
    sentence = explain(rule, decision, primary.test, interval=primary.interval, margin=primary.margin)
    return replace(
        comparison,
        verdict=decision.verdict,
        inconclusive=decision.inconclusive,
        rule_met=decision.rule_met,
        reason=prefix + sentence,
    )


def _single(t: Tested, rule: DecisionRule) -> _Primary | None:
    interval = t.interval(1 - rule.alpha)
    if interval is None or t.test.q is None:
        return None
    inside = t.interval(1 - 2 * rule.alpha)
    equivalent = t.p_equivalence is not None and t.p_equivalence <= rule.alpha
    missing = t.pairs is not None and t.pairs.n_missing > 0
    if missing:
        equivalent = equivalent and inside is not None and max(map(abs, inside)) < t.margin
    return _Primary(
        test=t.test,
        interval=interval,
        q=t.test.q,
        equivalent=equivalent,
        missing_could_undo=missing and interval[0] <= 0 <= interval[1],
        margin=t.margin,
    )


def _composite(chosen: Sequence[Tested], rule: DecisionRule) -> _Primary | None:
    """The weighted difference of several benchmarks, with its error from item influences and joint clusters."""
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
    interval = _shifted(t_interval(found.delta, found.se, found.df, 1 - rule.alpha), weights, chosen)
    ci95 = _shifted(t_interval(found.delta, found.se, found.df), weights, chosen)
    if interval is None:
        return None
    unit = chosen[0].test.unit
    margin = rule.margin if rule.margin > 0 else DEFAULT_MARGIN if unit == "fraction" else 0.0
    missing = any(t.pairs is not None and t.pairs.n_missing > 0 for t in chosen)
    n_pairs = sum(t.test.n_pairs for t in chosen)
    mde = mde_from_se(found.se, found.df, rule.alpha)
    test = PairedTest(
        benchmark=_name(weights, chosen),
        metric=rule.metric,
        compatibility=_weakest(chosen),
        method=f"composite of item influences, t({found.df:.0f})",
        n_pairs=n_pairs,
        n_attempted=sum(t.test.n_attempted for t in chosen),
        score_a=sum(w * (t.test.score_a or 0.0) for w, t in zip(weights, chosen, strict=True)),
        score_b=sum(w * (t.test.score_b or 0.0) for w, t in zip(weights, chosen, strict=True)),
        delta=found.delta,
        se=found.se,
        ci95=ci95,
        p=found.p,
        q=found.p,
        mde=mde or None,
        n_needed=int(np.ceil(n_pairs * (mde / margin) ** 2)) if margin > 0 and mde > 0 else None,
        higher_is_better=chosen[0].test.higher_is_better,
        unit=unit,
        contamination="see the components",
    )
    return _Primary(
        test=test,
        interval=interval,
        q=found.p,
        equivalent=margin > 0 and not missing and tost_p(found.delta, found.se, found.df, margin) <= rule.alpha,
        missing_could_undo=missing and interval[0] <= 0 <= interval[1],
        margin=margin,
    )


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
