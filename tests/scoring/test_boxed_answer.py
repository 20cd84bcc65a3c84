"""Boxes found by their braces, and their numbers exactly."""

from __future__ import annotations

from fractions import Fraction

import pytest

from eval_tasks.scoring.boxed_answer import boxed_number, last_box


@pytest.mark.parametrize(
    ("text", "box"),
    [
        (r"\boxed{1} and \boxed{\frac{1}{2}} end", r"\frac{1}{2}"),
        (r"\boxed {7}", "7"),
        (r"\fbox{7}", "7"),
        (r"\boxed{1} then \boxed{2", "1"),
        (r"\boxed{}", ""),
        ("boxed{7}", None),
        ("", None),
    ],
)
def test_the_last_closed_box(text: str, box: str | None) -> None:
    assert last_box(text) == box


@pytest.mark.parametrize(
    ("content", "number"),
    [
        ("18", Fraction(18)),
        ("x = 18", Fraction(18)),
        ("1,234,567.50", Fraction("1234567.5")),
        (r"1{,}234", Fraction(1234)),
        (r"\$12.50", Fraction("12.5")),
        (r"25\%", Fraction(25)),
        (".5", Fraction(1, 2)),
        ("−3", Fraction(-3)),
        (r"\frac{1}{3}", Fraction(1, 3)),
        (r"-\tfrac{1}{3}", Fraction(-1, 3)),
        (r"\text{18 or so}", None),
        ("none", None),
        ("1" * 5000, None),
    ],
)
def test_its_number(content: str, number: Fraction | None) -> None:
    assert boxed_number(content) == number
