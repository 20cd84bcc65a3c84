"""Numbers with a tolerance: the number in a generated text against one or several reference numbers.

Values are compared exactly, as fractions: 0.1 + 0.2 is 0.3 here. A number is right when it differs from a reference by
at most `absolute`, or by at most `relative` times the reference's magnitude; with neither it must be equal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from eval_tasks.errors import DataError, UserError
from eval_tasks.records import Item
from eval_tasks.scoring.references import references_of
from eval_tasks.scoring.registry import Case, Mark, MetricInfo, scorer

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)?(?:\.?\d+)?(?<=\d)(?:[eE][-+]?\d{1,3}(?!\w))?")
_MINUS = "\u2212"

_LONGEST = 1000
"""A run of digits as long as this is a model in a loop; Python refuses to read one of more than 4,300."""


def check_items(items: Sequence[Item]) -> None:
    """Raise DataError for an item with a reference that is no number."""
    for item in items:
        _gold(item)


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Raise UserError for a tolerance below 0 or not finite, and for an unknown `select`."""
    for name in ("absolute", "relative"):
        if not (math.isfinite(parameters[name]) and parameters[name] >= 0):
            raise UserError(f"parameter {name!r} of scorer 'numeric' is {parameters[name]}: give a number from 0 up")
    if parameters["select"] not in ("last", "first"):
        raise UserError(f"parameter 'select' of scorer 'numeric' is {parameters['select']!r}: give 'last' or 'first'")


@scorer(
    "numeric",
    version="1",
    kinds=("generation",),
    metrics={"within_tolerance": MetricInfo()},
    parameters={"absolute": 0.0, "relative": 0.0, "select": "last"},
    check_items=check_items,
    check_parameters=check_parameters,
)
def numeric(case: Case) -> list[Mark]:
    """1 when the last (or first) number of the output is within the tolerance of any reference."""
    found = numbers_in(case.output)
    if not found:
        return [Mark(metric="within_tolerance", value=0.0, detail="no number")]
    text, value = found[-1 if case.parameters["select"] == "last" else 0]
    absolute, relative = (Fraction(str(case.parameters[name])) for name in ("absolute", "relative"))
    right = any(abs(value - gold) <= max(absolute, relative * abs(gold)) for gold in _gold(case.item))
    return [Mark(metric="within_tolerance", value=float(right), extracted=text)]


def numbers_in(text: str) -> list[tuple[str, Fraction]]:
    """The numbers of a text in order, as written and by value: thousands commas, decimals and exponents understood."""
    found = (match.group() for match in _NUMBER.finditer(text.replace(_MINUS, "-")))
    return [(number, Fraction(number.replace(",", ""))) for number in found if 0 < len(number) < _LONGEST]


def _gold(item: Item) -> list[Fraction]:
    values = []
    for reference in references_of(item):
        found = numbers_in(reference.strip())
        if len(found) != 1 or found[0][0] != reference.strip().replace(_MINUS, "-"):
            raise DataError(f"item {item.item_id!r} has the reference {reference!r}, which is no number")
        values.append(found[0][1])
    return values
