"""A decision with its figures -> one plain sentence that a release manager reads. Points for fractions."""

from __future__ import annotations

from eval_tasks.compare.verdict import Decision
from eval_tasks.records import DecisionRule, PairedTest
from eval_tasks.stats.intervals import Interval

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


def explain(
    rule: DecisionRule,
    decision: Decision,
    test: PairedTest,
    *,
    label_a: str,
    label_b: str,
    interval: Interval,
    margin: float,
) -> str:
    """The sentence of a rule's verdict. interval: of A - B at confidence 1 - rule.alpha; margin: of equivalence."""
    a, b, what = f"A ({label_a})", f"B ({label_b})", f"{test.benchmark} {test.metric}".strip()
    figures = _figures(rule, test, interval)
    kind = _KINDS[rule.kind].format(margin=amount(rule.margin, test.unit))
    named = f"rule {rule.name!r} ({kind}, alpha {rule.alpha:g})"
    if decision.verdict == "A better":
        return f"{a} is better than {b}: on {what} {figures}; {named} is met."
    if decision.verdict == "B better":
        return f"{b} is better than {a}: on {what} {figures}; {named} is not met."
    if decision.rule_met:
        return f"{a} is not worse than {b} by {amount(rule.margin, test.unit)}: on {what} {figures}; {named} is met."
    if decision.inconclusive == "EQUIVALENT":
        return (
            f"{a} and {b} are equivalent within {amount(margin, test.unit)}: on {what} {figures}; {named} is not met."
            f"{_found(test)}"
        )
    could = _found(test) + _needed(test, margin)
    return f"{a} and {b} cannot be told apart: on {what} {figures}; {named} is not met.{could}"


def _figures(rule: DecisionRule, test: PairedTest, interval: Interval) -> str:
    delta = test.delta or 0.0
    way = "as high as" if delta == 0 else "higher than" if delta > 0 else "lower than"
    size = "" if delta == 0 else f"{amount(abs(delta), test.unit)} "
    ends = " to ".join(_points(end) if test.unit == "fraction" else f"{end:.4g}" for end in interval)
    q = f", q = {test.q:.2g}" if test.q is not None and test.q != test.p else ""
    return (
        f"A is {size}{way} B (A - B, {100 * (1 - rule.alpha):g} % interval {ends}; "
        f"p = {test.p:.2g}{q}; {test.n_pairs:,} items)"
    )


def _found(test: PairedTest) -> str:
    if test.mde is None:
        return ""
    return f" A true difference of {amount(test.mde, test.unit)} would have been found four times in five."


def _needed(test: PairedTest, margin: float) -> str:
    if test.n_needed is None:
        return ""
    target = margin if margin > 0 else abs(test.delta or 0.0)
    return f" About {test.n_needed:,} items would settle {amount(target, test.unit)}."


def _points(value: float) -> str:
    text = f"{100 * value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text
