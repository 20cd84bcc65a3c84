"""Numbers in, the words a reader sees out: the one place that rounds. Knows no layout.

Fractions are shown in points (82.0), one decimal; other units with four. An absent or non-finite number is a dash, so
that it is never taken for a zero. The minus sign is ASCII, so that a number can be copied into a spreadsheet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from eval_tasks.records import Cost

ABSENT = "–"


def unit_name(unit: str) -> str:
    """What a unit is called in display: fractions are shown in points."""
    return "points" if unit == "fraction" else unit


def amount(value: float | None, unit: str = "fraction") -> str:
    """A score: points with one decimal for a fraction, else four decimals."""
    return _fixed(value, unit, signed=False)


def change(value: float | None, unit: str = "fraction") -> str:
    """A difference, always with its sign; one that rounds to zero has none."""
    return _fixed(value, unit, signed=True)


def interval(ends: tuple[float, float] | None, unit: str = "fraction") -> str:
    """A confidence interval as ``[low, high]``."""
    return ABSENT if ends is None else f"[{amount(ends[0], unit)}, {amount(ends[1], unit)}]"


def change_interval(ends: tuple[float, float] | None, unit: str = "fraction") -> str:
    """The interval of a difference, both ends with sign."""
    return ABSENT if ends is None else f"[{change(ends[0], unit)}, {change(ends[1], unit)}]"


def probability(p: float | None) -> str:
    """A p or q value: three decimals, four below .01, and never a bare zero."""
    if p is None or not math.isfinite(p):
        return ABSENT
    if p < 0.0001:
        return "<0.0001"
    return f"{p:.4f}" if p < 0.01 else f"{p:.3f}"


def share(part: int, whole: int) -> str:
    """`part` of `whole` in per cent."""
    return ABSENT if whole == 0 else f"{100 * part / whole:.1f} %"


def count(n: int | None) -> str:
    """A number of things, thousands separated by commas."""
    return ABSENT if n is None else f"{n:,}"


def deviation(sd: float | None, unit: str) -> str:
    """A standard deviation, two significant digits for units, hundredths for points."""
    if sd is None:
        return ABSENT
    return f"{100 * sd:.2f} points" if unit == "fraction" else f"{sd:.2g} {unit_name(unit)}"


def decimal(value: float | None) -> str:
    """An expected count: two decimals at most."""
    return ABSENT if value is None or not math.isfinite(value) else f"{value:.2f}".rstrip("0").rstrip(".")


def plain(value: float | None) -> str:
    """A number of one item, as it was recorded: four significant digits, whatever its unit."""
    if value is None:
        return ABSENT
    return f"{value:.4g}" if math.isfinite(value) else str(value)


def duration(seconds: float | None) -> str:
    """Seconds in the unit a person would use."""
    if seconds is None or not math.isfinite(seconds):
        return ABSENT
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def cost_text(cost: Cost) -> str:
    """A cost in words; what nobody knows is left out."""
    words = [f"{cost.items:,} items", f"{cost.tokens:,} tokens"]
    words += [f"{duration(cost.device_seconds)} of devices"] if cost.device_seconds is not None else []
    words += [f"${cost.usd:,.2f}"] if cost.usd is not None else []
    return ", ".join(words)


def counts_in_words(counts: Mapping[str, int]) -> str:
    """The counts that are not zero, such as ``3 invalid, 1 missing``; empty when all are zero."""
    return ", ".join(f"{n:,} {word}" for word, n in counts.items() if n)


def _fixed(value: float | None, unit: str, *, signed: bool) -> str:
    if value is None or not math.isfinite(value):
        return ABSENT
    scaled, places = (100 * value, 1) if unit == "fraction" else (value, 4)
    rounded = round(scaled, places)
    if rounded == 0:
        return f"{0:.{places}f}"
    return f"{rounded:+.{places}f}" if signed else f"{rounded:.{places}f}"
