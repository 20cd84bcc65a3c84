"""A decision with its figures -> one plain sentence that a release manager reads. Points for fractions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eval_tasks.records import DecisionRule, PairedTest
from eval_tasks.stats.intervals import Interval

if TYPE_CHECKING:
    from eval_tasks.compare.verdict import Decision

_KINDS = {
    "superiority": "superiority",
    "superiority_by_margin": "superiority by a margin of {margin}",
    "non_inferiority": "non-inferiority within {margin}",
    "point_and_p": "at least {margin} and p at most alpha",
}


def amount(value: float, unit: str) -> str:
    """A difference with its unit: 0.023 of a fraction is ``2.3 points``."""
    if unit != "fraction":
        return f"{value:.4g} {unit}"
    text = _points(value)
    return f"{text} {'point' if text in ('1', '-1') else 'points'}"


def span(interval: Interval, unit: str) -> str:
    """An interval's two ends, the unit said once: ``-1.2 to 3.4 points``."""
    if unit == "fraction":
        return f"{_points(interval[0])} to {_points(interval[1])} points"
    return f"{interval[0]:.4g} to {interval[1]:.4g} {unit}"


def explain(rule: DecisionRule, decision: Decision, test: PairedTest, *, interval: Interval, margin: float) -> str:
    """Why the rule's verdict is what it is. It stands after the verdict, which names the arms.

    interval: of A - B at confidence 1 - rule.alpha; margin: of equivalence.
    """
    kind = _KINDS[rule.kind].format(margin=amount(rule.margin, test.unit))
    met = "is met" if decision.rule_met else "is not met"
    reason = f"on {test.benchmark} {test.metric}, {_figures(rule, test, interval)}"
    if decision.rule_met and decision.verdict == "INDISTINGUISHABLE":
        reason += f", so A is not worse than B by {amount(rule.margin, test.unit)} or more"
    elif decision.inconclusive == "EQUIVALENT":
        reason += f", so any difference is smaller than {amount(margin, test.unit)}"
    reason += f"; rule {rule.name!r} ({kind}, alpha {rule.alpha:g}) {met}"
    if decision.verdict == "INDISTINGUISHABLE":
        reason += _found(test)
        if decision.inconclusive == "UNDERPOWERED":
            reason += _needed(test, margin)
    return reason + "."


def _figures(rule: DecisionRule, test: PairedTest, interval: Interval) -> str:
    delta = test.delta or 0.0
    way = "as high as" if delta == 0 else "higher than" if delta > 0 else "lower than"
    size = "" if delta == 0 else f"{amount(abs(delta), test.unit)} "
    q = f", q = {test.q:.2g}" if test.q is not None and test.q != test.p else ""
    return (
        f"A is {size}{way} B (A - B, {100 * (1 - rule.alpha):g} % interval {span(interval, test.unit)}; "
        f"p = {test.p:.2g}{q}; {test.n_pairs:,} items)"
    )


def _found(test: PairedTest) -> str:
    if test.mde is None:
        return ""
    return f"; a true difference of {amount(test.mde, test.unit)} would have been found four times in five"


def _needed(test: PairedTest, margin: float) -> str:
    if test.n_needed is None:
        return ""
    target = margin if margin > 0 else abs(test.delta or 0.0)
    return f"; about {test.n_needed:,} items would settle {amount(target, test.unit)}"


def _points(value: float) -> str:
    text = f"{100 * value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text
