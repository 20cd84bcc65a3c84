r"""GSM8K scoring: the number in a generated solution against the gold number.

`strict` and `flexible` mirror lm-eval 0.4.9 (gsm8k version 3.0) to the letter, traps included: strict reads the first
``#### n``, flexible the last number-like string, and both compare texts after dropping ``,``, ``$``, all up to
``#### `` and one trailing full stop. So "$29.00" is not 29 there.

`numeric` is ours: it reads the last number-like string that has a digit, takes U+2212 for a minus and compares values,
so "$29.00" is 29. `boxed` is ours too: the value of the last ``\boxed{...}`` (LaTeX fractions and thousands marks
understood), and where there is none, what `numeric` reads. `detail` says "no digit" where a reading has none, "no box".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from eval_tasks.errors import DataError
from eval_tasks.records import Item
from eval_tasks.scoring.boxed_answer import boxed_number, last_box
from eval_tasks.scoring.registry import Case, Mark, MetricInfo, scorer

_STRICT = re.compile(r"#### (\-?[0-9\.\,]+)")
_FLEXIBLE = re.compile(r"(?:-?[$0-9.,]{2,})|(?:-?[0-9]+)")
_UP_TO_MARKER = re.compile(r"(?s).*#### ")
_DIGIT = re.compile("[0-9]")
_MINUS = "\u2212"
_NOTHING_FOUND = "[invalid]"


def check_items(items: Sequence[Item]) -> None:
    """Raise DataError for an item whose gold answer holds no number."""
    for item in items:
        _gold_number(item)


@scorer(
    "gsm8k",
    version="2",
    kinds=("generation",),
    metrics={"flexible": MetricInfo(), "strict": MetricInfo(), "numeric": MetricInfo(), "boxed": MetricInfo()},
    check_items=check_items,
)
def gsm8k(case: Case) -> list[Mark]:
    """flexible, strict, numeric and boxed; the target is the gold rationale with its ``#### n``, or the bare number."""
    gold = str(case.item.target)
    readings = _FLEXIBLE.findall(case.output)
    with_digit = [found for found in _FLEXIBLE.findall(case.output.replace(_MINUS, "-")) if _DIGIT.search(found)]
    strict = _STRICT.search(case.output)
    gold_number = _gold_number(case.item)
    numeric = _numeric_mark(with_digit[-1] if with_digit else None, gold_number)
    return [
        _text_mark("flexible", readings[-1].strip() if readings else None, gold),
        _text_mark("strict", strict.group(1).strip() if strict else None, gold),
        numeric,
        _boxed_mark(last_box(case.output), gold_number, numeric),
    ]


def _text_mark(metric: str, reading: str | None, gold: str) -> Mark:
    text = _NOTHING_FOUND if reading is None else reading
    return Mark(
        metric=metric,
        value=float(_reduced(text) == _reduced(gold)),
        extracted=reading,
        detail="" if _DIGIT.search(text) else "no digit",
    )


def _numeric_mark(reading: str | None, gold: Decimal) -> Mark:
    if reading is None:
        return Mark(metric="numeric", value=0.0, detail="no digit")
    number = _number(reading)
    detail = "not a number" if number is None else ""
    return Mark(metric="numeric", value=float(number == gold), extracted=reading, detail=detail)


def _boxed_mark(box: str | None, gold: Decimal, numeric: Mark) -> Mark:
    if box is None:
        return replace(numeric, metric="boxed", detail=numeric.detail or "no box")
    number = boxed_number(box)
    detail = "no digit" if number is None else ""
    return Mark(metric="boxed", value=float(number == Fraction(gold)), extracted=box, detail=detail)


def _reduced(text: str) -> str:
    text = text.replace(",", "").replace("$", "")
    text = _UP_TO_MARKER.sub("", text)
    return re.sub(r"\.$", "", text).lower()


def _number(reading: str) -> Decimal | None:
    try:
        return Decimal(reading.replace(",", "").replace("$", "").rstrip("."))
    except InvalidOperation:
        return None


def _gold_number(item: Item) -> Decimal:
    number = _number(str(item.target).rpartition("####")[2].strip())
    if number is None or not number.is_finite():
        raise DataError(
            f"item {item.item_id!r} has no number as its gold answer: its target ends {str(item.target)[-40:]!r}"
        )
    return number
