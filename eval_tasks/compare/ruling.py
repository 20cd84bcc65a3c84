"""A comparison, its tested benchmarks and a decision rule -> the comparison with the rule's verdict and its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eval_tasks.compare.primary import Primary, single_primary
from eval_tasks.compare.sentence import explain, explain_several
from eval_tasks.compare.testing import Tested
from eval_tasks.compare.verdict import Decision, adjusted, decide
from eval_tasks.compare.weighing import composite_primary
from eval_tasks.records import Comparison, DecisionRule, PairedTest
from eval_tasks.stats.recipes import Added


def ruled(
    comparison: Comparison,
    rule: DecisionRule,
    chosen: Sequence[Tested],
    *,
    exploratory_reason: str,
    added: Sequence[Added] = (),
) -> Comparison:
    """Apply a rule to the benchmarks it names. exploratory_reason: why it does not bind, '' when it does.

    added: variances that a composite carries beside its items'; a benchmark's own are in its test.
    """
    prefix = f"exploratory, since {exploratory_reason}; " if exploratory_reason else ""
    comparison = replace(comparison, rule=rule, exploratory=bool(exploratory_reason))
    stuck = [t for t in chosen if t.estimate is None]
    if stuck:
        names = ", ".join(f"{t.test.benchmark} ({t.test.not_tested})" for t in stuck)
        return replace(
            comparison, reason=f"{prefix}no verdict: rule {rule.name!r} needs {names}, which was not tested."
        )
    if rule.primary:
        return _several(comparison, rule, chosen, prefix)
    primary = _single(comparison, rule, chosen[0]) if len(chosen) == 1 else composite_primary(chosen, rule, added)
    if primary is None:
        reason = (
            f"{prefix}no verdict: the items of rule {rule.name!r} form one cluster, which has no spread to test with."
        )
        return replace(comparison, reason=reason)
    decision = _decision(rule, primary)
    final = _decided(primary, decision, rule)
    sentence = explain(rule, decision, final, interval=primary.interval, margin=primary.margin)
    comparison = replace(
        comparison,
        verdict=decision.verdict,
        inconclusive=decision.inconclusive,
        rule_met=decision.rule_met,
        reason=prefix + sentence,
    )
    if len(chosen) > 1:
        return replace(comparison, composite=replace(final, adjusted_by="none"))
    return _with_tests(comparison, [final])


def _decision(rule: DecisionRule, primary: Primary) -> Decision:
    return decide(
        rule,
        delta=primary.test.delta or 0.0,
        p=primary.q,
        q=primary.q,
        interval=primary.interval,
        equivalent=primary.equivalent,
        missing_could_undo=primary.missing_could_undo,
        higher_is_better=primary.test.higher_is_better,
    )


def _decided(primary: Primary, decision: Decision, rule: DecisionRule) -> PairedTest:
    """The test as the rule leaves it: its own q and verdict in place of the exploratory ones."""
    return replace(
        primary.test,
        q=primary.q,
        verdict=decision.verdict,
        inconclusive=decision.inconclusive,
        primary=True,
        adjusted_by=rule.multiplicity,
        ci_fcr=None,
    )


def _with_tests(comparison: Comparison, decided: Sequence[PairedTest]) -> Comparison:
    by_name = {test.benchmark: test for test in decided}
    return replace(comparison, tests=tuple(by_name.get(test.benchmark, test) for test in comparison.tests))


def _level(rule: DecisionRule, family: int) -> float:
    """Confidence of a primary benchmark's interval: adjusted p-values stand beside Bonferroni's intervals."""
    return 1 - rule.alpha / (1 if rule.multiplicity == "none" else family)


def _single(comparison: Comparison, rule: DecisionRule, t: Tested) -> Primary | None:
    """One primary benchmark; with a multiplicity method it is one of all that were tested."""
    if t.test.p is None:
        return None
    if rule.multiplicity == "none":
        return single_primary(t, q=t.test.p, alpha=rule.alpha, confidence=1 - rule.alpha)
    family = [test for test in comparison.tests if test.p is not None]
    q_values = adjusted([test.p for test in family], rule.multiplicity)
    q = next(
        q for test, q in zip(family, q_values, strict=True) if test.benchmark == t.test.benchmark and q is not None
    )
    return single_primary(t, q=q, alpha=rule.alpha, confidence=_level(rule, len(family)))


def _several(comparison: Comparison, rule: DecisionRule, chosen: Sequence[Tested], prefix: str) -> Comparison:
    """Primary benchmarks decided apart, their p-values adjusted over all of them.

    A is better when it is shown to be on one and shown to be worse on none. Not to be worse must hold on every one, so
    that each is tested at the whole level (an intersection of claims needs no adjustment).
    """
    q_values = adjusted([t.test.p for t in chosen], rule.multiplicity)
    level = _level(rule, len(chosen))
    primaries = [
        single_primary(t, q=1.0 if q is None else q, alpha=rule.alpha, confidence=level)
        for t, q in zip(chosen, q_values, strict=True)
    ]
    whole = [single_primary(t, q=1.0, alpha=rule.alpha, confidence=1 - rule.alpha) for t in chosen]
    found = [(p, w) for p, w in zip(primaries, whole, strict=True) if p is not None and w is not None]
    if len(found) < len(chosen):
        raise ValueError("a benchmark with an estimate has an interval")
    decisions = [_decision(rule, p) for p, _ in found]
    final = [_decided(p, d, rule) for (p, _), d in zip(found, decisions, strict=True)]
    overall = _overall(rule, decisions, [_decision(rule, w).rule_met for _, w in found], [p for p, _ in found])
    margins = [p.margin for p, _ in found]
    return replace(
        _with_tests(comparison, final),
        verdict=overall.verdict,
        inconclusive=overall.inconclusive,
        rule_met=overall.rule_met,
        reason=prefix
        + explain_several(rule, overall, final, [p.interval for p, _ in found], level=level, margin=min(margins)),
    )


def _overall(
    rule: DecisionRule, decisions: Sequence[Decision], not_worse: Sequence[bool], primaries: Sequence[Primary]
) -> Decision:
    """not_worse: of a non-inferiority rule, each benchmark's claim at the whole level."""
    better = any(d.verdict == "A better" for d in decisions)
    worse = any(d.verdict == "B better" for d in decisions)
    every = all(not_worse)
    if rule.kind == "non_inferiority":
        better = better and every
    met = every if rule.kind == "non_inferiority" else better and not worse
    if better and not worse:
        return Decision(verdict="A better", inconclusive="", rule_met=met)
    if worse and not better:
        return Decision(verdict="B better", inconclusive="", rule_met=False)
    if better and worse:
        return Decision(verdict="INDISTINGUISHABLE", inconclusive="", rule_met=False, claim="the benchmarks disagree")
    same = all(p.equivalent for p in primaries)
    return Decision(verdict="INDISTINGUISHABLE", inconclusive="EQUIVALENT" if same else "UNDERPOWERED", rule_met=met)
