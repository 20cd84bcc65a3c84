import math

import pytest

from eval_tasks.report import numbers


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.82, "fraction", "82.0"),
        (1.0, "fraction", "100.0"),
        (0.0, "fraction", "0.0"),
        (-0.0001, "fraction", "0.0"),
        (0.91234, "bits per byte", "0.9123"),
        (None, "fraction", numbers.ABSENT),
        (math.nan, "fraction", numbers.ABSENT),
        (-math.inf, "bits per byte", numbers.ABSENT),
    ],
)
def test_an_amount_is_in_points_or_its_unit(value: float | None, unit: str, shown: str) -> None:
    assert numbers.amount(value, unit) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0132, "+1.3"), (-0.0132, "-1.3"), (0.0, "0.0"), (-0.0004, "0.0"), (None, numbers.ABSENT)]
)
def test_a_change_has_a_sign_unless_it_rounds_to_zero(value: float | None, shown: str) -> None:
    assert numbers.change(value) == shown


def test_intervals() -> None:
    assert numbers.interval((0.783925, 0.851195)) == "[78.4, 85.1]"
    assert numbers.change_interval((-0.0003, 0.0327)) == "[0.0, +3.3]"
    assert numbers.interval(None) == numbers.ABSENT


@pytest.mark.parametrize(
    ("p", "shown"),
    [
        (0.021271, "0.021"),
        (1.0, "1.000"),
        (0.0096, "0.0096"),
        (0.0, "<0.0001"),
        (9.9e-5, "<0.0001"),
        (None, numbers.ABSENT),
        (math.nan, numbers.ABSENT),
    ],
)
def test_a_probability_is_never_a_bare_zero(p: float | None, shown: str) -> None:
    assert numbers.probability(p) == shown


def test_counts_and_durations() -> None:
    assert numbers.count(500_000) == "500,000"
    assert numbers.share(30, 490) == "6.1 %"
    assert numbers.share(0, 0) == numbers.ABSENT
    assert numbers.decimal(0.18) == "0.18"
    assert numbers.decimal(2.0) == "2"
    assert numbers.duration(59.94) == "59.9 s"
    assert numbers.duration(600) == "10.0 min"
    assert numbers.duration(86_400) == "24.0 h"
    assert numbers.counts_in_words({"invalid": 3, "missing": 0, "excluded": 1200}) == "3 invalid, 1,200 excluded"
