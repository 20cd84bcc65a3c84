"""A decision with its figures -> one plain sentence that a release manager reads. Points for fractions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from eval_tasks.records import DecisionRule, PairedTest
from eval_tasks.stats.intervals import Interval

if TYPE_CHECKING:
    from eval_tasks.compare.verdict import Decision

MOST_NAMED = 4

_ADJUSTED = {"none": "p not adjusted", "holm": "p adjusted by Holm", "bh": "p adjusted by Benjamini-Hochberg"}

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


def magnitude(n: int) -> str:
    """A large number in three digits: 1,200,000,000 is ``1.2B``."""
    for size, letter in ((10**12, "T"), (10**9, "B"), (10**6, "M")):
        if n >= size:
            return f"{n / size:.3g}{letter}"
    return f"{n:,}"


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


def explain_several(
    rule: DecisionRule,
    overall: Decision,
    tests: Sequence[PairedTest],
    intervals: Sequence[Interval],
    *,
    level: float,
    margin: float,
) -> str:
    """The same of several primary benchmarks that were decided apart. intervals: of A - B at confidence `level`."""
    unit = tests[0].unit
    kind = _KINDS[rule.kind].format(margin=amount(rule.margin, unit))
    parts = [_one_of_several(t, i, level) for t, i in list(zip(tests, intervals, strict=True))[:MOST_NAMED]]
    more = f"; and {len(tests) - MOST_NAMED} more in the table" if len(tests) > MOST_NAMED else ""
    ruled = f"; rule {rule.name!r} ({kind}, alpha {rule.alpha:g}, {_ADJUSTED[rule.multiplicity]}) "
    reason = "; ".join(parts) + more + ruled + ("is met" if overall.rule_met else "is not met")
    if overall.claim:
        reason += f": {overall.claim}"
    elif overall.inconclusive == "EQUIVALENT":
        reason += f"; any difference is smaller than {amount(margin, unit)} on each"
    elif overall.inconclusive == "UNDERPOWERED":
        found = [t for t in tests if t.mde is not None]
        if found:
            reason += "; true differences that would have been found four times in five: "
            reason += ", ".join(f"{amount(t.mde or 0.0, t.unit)} on {t.benchmark}" for t in found[:MOST_NAMED])
    return reason + "."


def _one_of_several(test: PairedTest, interval: Interval, level: float) -> str:
    says = {"A better": "A is better", "B better": "B is better"}.get(test.verdict, "no difference is shown")
    delta = test.delta or 0.0
    q = "" if test.q is None else f", q = {test.q:.2g}"
    return (
        f"on {test.benchmark} {test.metric} {says} (A - B = {amount(delta, test.unit)}, {100 * level:.3g} % interval "
        f"{span(interval, test.unit)}{q}; {test.n_pairs:,} items)"
    )


def _figures(rule: DecisionRule, test: PairedTest, interval: Interval) -> str:
    delta = test.delta or 0.0
    p_value = "" if test.p is None else f"p = {test.p:.2g}"
    way = "as high as" if delta == 0 else "higher than" if delta > 0 else "lower than"
    size = "" if delta == 0 else f"{amount(abs(delta), test.unit)} "
    q = f", q = {test.q:.2g}" if test.q is not None and test.q != test.p else ""
    return (
        f"A is {size}{way} B (A - B, {100 * (1 - rule.alpha):g} % interval {span(interval, test.unit)}; "
        f"{p_value}{q}; {test.n_pairs:,} items)"
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
