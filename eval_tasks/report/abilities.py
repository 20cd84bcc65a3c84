"""Abilities by item-response weights in, table cells out. Knows no layout.

An ability is on its calibration's own scale: 0 is the mean of the calibration's runs, 1 their standard deviation.
"""

from __future__ import annotations

from eval_tasks.records import Ability, AbilityDifference, Comparison, PairedTest
from eval_tasks.report.numbers import ABSENT


def ability_cell(found: Ability | None) -> str:
    """``+0.84 ± 0.07``, whose weights, and what must be said; a dash where nobody calibrated."""
    if found is None:
        return ABSENT
    if found.theta is None or found.se is None:
        return found.note
    number = f"{signed(found.theta)} ± {found.se:.2f}"
    return "; ".join(part for part in (number, f"by {found.calibration}", found.note) if part)


def difference_cell(comparison: Comparison, test: PairedTest) -> str:
    """One test's difference of abilities with its interval, or why there is none; a dash where nobody calibrated."""
    found = next((d for d in comparison.abilities if (d.benchmark, d.metric) == (test.benchmark, test.metric)), None)
    return ABSENT if found is None else _difference(found)


def _difference(found: AbilityDifference) -> str:
    if found.delta is None:
        return found.note
    number = f"{signed(found.delta)} {signed_interval(found.ci95)}"
    return "; ".join(part for part in (number, f"by {found.calibration}", found.note) if part)


def signed_interval(ends: tuple[float, float] | None) -> str:
    """Both ends with sign, two decimals."""
    return ABSENT if ends is None else f"[{signed(ends[0])}, {signed(ends[1])}]"


def signed(value: float) -> str:
    """Two decimals, always with a sign."""
    return f"{value:+.2f}"
