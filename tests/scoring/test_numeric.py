"""Numbers read exactly, compared within a tolerance, and references that are none."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from eval_tasks.errors import DataError, UserError
from eval_tasks.records import Item, Score, ScorerRef
from eval_tasks.scoring import check_items, validate_scorer
from eval_tasks.scoring.numeric import numbers_in

ScoreOne = Callable[..., dict[str, Score]]


@pytest.mark.parametrize(
    ("output", "target", "parameters", "value"),
    [
        ("It is 18.", 18, {}, 1),
        ("18 of 20", 18, {}, 0),
        ("18 of 20", 18, {"select": "first"}, 1),
        ("$29.00.", "29", {}, 1),
        ("1,234.50", "1234.5", {}, 1),
        ("−3", "-3", {}, 1),
        ("3.14", "3.14159", {}, 0),
        ("3.14", "3.14159", {"absolute": 0.01}, 1),
        ("3.13", "3.14", {"absolute": 0.01}, 1),
        ("3.1299999", "3.14", {"absolute": 0.01}, 0),
        ("99", "100", {"relative": 0.01}, 1),
        ("-101", "-100", {"relative": 0.01}, 1),
        ("98.9", "100", {"relative": 0.01}, 0),
        ("0.001", "0", {"relative": 0.5}, 0),
        ("98", "100", {"relative": 0.01, "absolute": 2.0}, 1),
        ("6.02e23", "602" + "0" * 21, {}, 1),
        ("3", [1, 2, "3.0"], {}, 1),
        ("eighteen", 18, {}, 0),
    ],
)
def test_within_tolerance(
    score_one: ScoreOne, output: str, target: Any, parameters: dict[str, Any], value: int
) -> None:
    found = score_one("numeric", target=target, output=output, parameters=parameters)["within_tolerance"]
    assert found.value == value
    assert (found.detail == "no number") == (output == "eighteen")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1,234 and 10,20", ["1,234", "10", "20"]),
        ("2-3 at 7:30", ["2", "3", "7", "30"]),
        ("x3 v1.2.3 .5", [".5"]),
        ("5. +6", ["5", "+6"]),
        ("7" * 5000, []),
    ],
)
def test_what_counts_as_a_number(text: str, numbers: list[str]) -> None:
    assert [written for written, _ in numbers_in(text)] == numbers


def test_values_are_exact() -> None:
    assert numbers_in("0.1")[0][1] + numbers_in("0.2")[0][1] == Fraction(3, 10)


@pytest.mark.parametrize("target", ["eighteen", "18 apples", None, [18, "x"], True])
def test_a_reference_that_is_no_number_is_refused_at_loading(target: Any) -> None:
    with pytest.raises(DataError, match="item 'q1' has"):
        check_items(ScorerRef(name="numeric", version="1"), [Item(item_id="q1", fields={}, target=target)])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"absolute": -1.0}, "'absolute' of scorer 'numeric' is -1.0: give a number from 0 up"),
        ({"relative": float("nan")}, "'relative'"),
        ({"select": "second"}, "give 'last' or 'first'"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        validate_scorer(ScorerRef(name="numeric", version="1", parameters=parameters), "generation")
