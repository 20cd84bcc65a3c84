"""Tested benchmarks -> verdicts: one for each, exploratory, and the comparison's own by the decision rule.

A verdict is `A better`, `B better` or `INDISTINGUISHABLE`; the last says EQUIVALENT (shown to be within the margin) or
UNDERPOWERED (the data could not tell). `gain` is the difference with its sign turned so that more is better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from eval_tasks.compare.testing import Tested
from eval_tasks.errors import UserError, did_you_mean
from eval_tasks.records import DecisionRule
from eval_tasks.records.verdict import Inconclusive, Multiplicity, Verdict
from eval_tasks.stats.intervals import Interval
from eval_tasks.stats.multiplicity import benjamini_hochberg, false_coverage_confidence, holm


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the rule says. `rule_met`: its claim was shown for A. `claim`: what was shown, in words, or ''."""

    verdict: Verdict
    inconclusive: Inconclusive
    rule_met: bool
    claim: str = ""


def adjusted(p_values: Sequence[float | None], method: Multiplicity = "bh") -> list[float | None]:
    """p adjusted over the tested benchmarks; None is not tested and takes no part."""
    p = np.array([np.nan if value is None else value for value in p_values], dtype=np.float64)
    q = p if method == "none" else holm(p) if method == "holm" else benjamini_hochberg(p)
    return [None if np.isnan(value) else float(value) for value in q]


def with_verdicts(tested: Sequence[Tested], alpha: float) -> list[Tested]:
    """Each benchmark with its q and its exploratory verdict: q <= alpha, and no missing item could undo it."""
    q_values = adjusted([t.test.p for t in tested])
    q_equivalence = adjusted([t.p_equivalence for t in tested])
    n_tested = sum(q is not None for q in q_values)
    calls = [_exploratory(t, q, alpha) for t, q in zip(tested, q_values, strict=True)]
    n_called = sum(call != "INDISTINGUISHABLE" for call in calls)
    result = []
    for t, q, q_same, call in zip(tested, q_values, q_equivalence, calls, strict=True):
        notes, ci_fcr = t.test.notes, None
        inconclusive: Inconclusive = ""
        if q is not None and call == "INDISTINGUISHABLE":
            inconclusive = "EQUIVALENT" if _equivalent(t, q_same, alpha) else "UNDERPOWERED"
            if q <= alpha:
                notes += ("not called: the missing items could undo the difference",)
        if call != "INDISTINGUISHABLE" and n_called < n_tested:
            ci_fcr = t.interval(false_coverage_confidence(n_called, n_tested, alpha))
        test = replace(t.test, q=q, verdict=call, inconclusive=inconclusive, notes=notes, ci_fcr=ci_fcr)
        result.append(replace(t, test=test))
    return result


def _exploratory(t: Tested, q: float | None, alpha: float) -> Verdict:
    if q is None or q > alpha or t.estimate is None or _missing_could_undo(t, 1 - alpha):
        return "INDISTINGUISHABLE"
    return better_arm(t.estimate.delta, t.test.higher_is_better)


def _missing_could_undo(t: Tested, confidence: float) -> bool:
    if t.pairs is None or t.pairs.n_missing == 0 or t.pairs.gap is None:
        return False
    interval = t.interval(confidence)
    return interval is None or interval[0] <= 0 <= interval[1]


def _equivalent(t: Tested, q: float | None, alpha: float) -> bool:
    """Within the margin by two one-sided tests; with missing items, only if the widened interval is inside too."""
    if q is None or q > alpha:
        return False
    interval = t.interval(1 - 2 * alpha)
    return t.pairs is None or t.pairs.n_missing == 0 or (interval is not None and max(map(abs, interval)) < t.margin)


def better_arm(delta: float, higher_is_better: bool) -> Verdict:
    """Which arm a difference other than 0 speaks for."""
    if delta == 0:
        return "INDISTINGUISHABLE"
    return "A better" if (delta > 0) == higher_is_better else "B better"


def decide(
    rule: DecisionRule,
    *,
    delta: float,
    p: float,
    q: float,
    interval: Interval,
    equivalent: bool,
    missing_could_undo: bool,
    higher_is_better: bool,
) -> Decision:
    """Apply a rule to its primary metric or composite. interval: at confidence 1 - rule.alpha, of A - B.

    ``superiority``: q <= alpha. ``superiority_by_margin``: the whole interval beyond the margin. ``non_inferiority``:
    the whole interval above -margin. ``point_and_p``: the estimate beyond the margin, and p <= alpha.
    """
    gain, (low, high) = (delta, interval) if higher_is_better else (-delta, (-interval[1], -interval[0]))
    inconclusive: Inconclusive = "EQUIVALENT" if equivalent else "UNDERPOWERED"
    superior = q <= rule.alpha and not missing_could_undo
    if rule.kind == "superiority":
        a_wins, b_wins = superior and gain > 0, superior and gain < 0
    elif rule.kind == "superiority_by_margin":
        a_wins, b_wins = low > rule.margin, high < -rule.margin
    elif rule.kind == "point_and_p":
        enough = p <= rule.alpha and abs(gain) >= rule.margin - 1e-12 and not missing_could_undo
        a_wins, b_wins = enough and gain > 0, enough and gain < 0
    else:
        a_wins, b_wins = superior and gain > 0 and low > -rule.margin, superior and high < -rule.margin
    if a_wins:
        return Decision(verdict="A better", inconclusive="", rule_met=True)
    if b_wins:
        return Decision(verdict="B better", inconclusive="", rule_met=False)
    met = rule.kind == "non_inferiority" and low > -rule.margin
    claim = "A is not worse than B by the margin or more" if met else ""
    return Decision(verdict="INDISTINGUISHABLE", inconclusive=inconclusive, rule_met=met, claim=claim)


def check_rule(rule: DecisionRule) -> None:
    """Raises UserError for a rule that cannot decide: weights, margin, alpha or kind that make no sense."""
    if bool(rule.components) == bool(rule.primary):
        raise UserError(
            f"rule {rule.name!r} names no benchmark; give components, such as {{mmlu: 1.0}}, or several primary ones"
            if not rule.components
            else f"rule {rule.name!r} has both components and primary benchmarks; one of the two decides"
        )
    for name, weight in rule.components.items():
        if not np.isfinite(weight) or weight <= 0:
            raise UserError(f"rule {rule.name!r}: weight {weight} of {name!r}; weights are above 0")
    total = sum(rule.components.values())
    if rule.components and abs(total - 1) > 1e-9:
        raise UserError(f"rule {rule.name!r}: weights sum to {total:g}, not 1")
    if len(set(rule.primary)) < len(rule.primary):
        raise UserError(f"rule {rule.name!r}: a benchmark is primary twice in {', '.join(rule.primary)}")
    if rule.seeds < 1:
        raise UserError(f"rule {rule.name!r}: {rule.seeds} seeds; an arm has 1 run at least")
    if not np.isfinite(rule.margin) or rule.margin < 0:
        raise UserError(f"rule {rule.name!r}: margin {rule.margin}; a margin is a fraction of 0 or more")
    if rule.margin == 0 and rule.kind == "non_inferiority":
        raise UserError(f"rule {rule.name!r}: non_inferiority needs a margin above 0")
    if not 0 < rule.alpha < 0.5:
        raise UserError(f"rule {rule.name!r}: alpha {rule.alpha}; it lies between 0 and .5")


def rule_tests(rule: DecisionRule, tested: Sequence[Tested]) -> list[Tested]:
    """The benchmarks the rule names, in its order. Raises UserError when one is not in the comparison."""
    by_name = {t.test.benchmark: t for t in tested}
    for name in rule.benchmarks:
        if name not in by_name:
            raise UserError(
                f"rule {rule.name!r} names benchmark {name!r}, which the two runs do not share; "
                f"{did_you_mean(name, by_name)}"
            )
    chosen = [by_name[name] for name in rule.benchmarks]
    for t in chosen:
        if (rule.direction == "higher") != t.test.higher_is_better:
            better = "higher" if t.test.higher_is_better else "lower"
            raise UserError(
                f"rule {rule.name!r} says {rule.direction} is better, but {better} is better for {t.test.metric!r} of "
                f"{t.test.benchmark!r}; register it with direction: {better}"
            )
    if len({t.test.unit for t in chosen}) > 1 and (rule.components or rule.margin > 0):
        units = ", ".join(sorted({t.test.unit for t in chosen}))
        way_out = "a composite needs one" if rule.components else "a margin has one"
        raise UserError(f"rule {rule.name!r} adds benchmarks of different units ({units}); {way_out}")
    return chosen
