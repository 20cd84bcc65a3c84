"""Agreement and kappa: published values, and what is not defined."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.inter_rater import fleiss_kappa

from eval_tasks.stats.agreement import ONE_CATEGORY, agreement, majority, many_raters
from eval_tasks.stats.influence import FloatArray

NAN = np.nan


def pairs(table: list[list[int]]) -> tuple[FloatArray, FloatArray]:
    """Two raters' labels whose cross table is `table`."""
    rows = [(i, j) for i, row in enumerate(table) for j, n in enumerate(row) for _ in range(n)]
    both = np.array(rows, dtype=np.float64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def test_the_example_of_fleiss_cohen_and_everitt() -> None:
    """Their paper of 1969: 200 patients, three diagnoses, two raters: kappa .429, standard error .054."""
    a, b = pairs([[106, 10, 4], [22, 28, 10], [2, 12, 6]])
    found = agreement(a, b)
    assert (found.n, found.n_agree) == (200, 140)
    assert found.kappa == pytest.approx(0.429, abs=5e-4)
    assert found.kappa_ci95 is not None
    assert (found.kappa_ci95[1] - found.kappa_ci95[0]) / 2 / 1.96 == pytest.approx(0.054, abs=5e-4)


def test_the_share_has_wilsons_interval() -> None:
    a, b = pairs([[20, 5], [10, 15]])
    found = agreement(a, b)
    assert found.agreement == 0.7
    assert found.ci95 == pytest.approx((0.562496, 0.808964), abs=1e-6)
    assert found.kappa == pytest.approx(0.4)


def test_full_agreement_has_an_interval_with_a_width() -> None:
    a, b = pairs([[25, 0], [0, 25]])
    found = agreement(a, b)
    assert found.kappa == 1.0
    assert found.kappa_ci95 == pytest.approx((0.857305, 1.0), abs=1e-6)
    assert "Wilson" in found.kappa_note


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_outputs_have_no_kappa(n: int) -> None:
    found = agreement(np.ones(n), np.ones(n))
    assert (found.n, found.kappa, found.kappa_ci95) == (n, None, None)
    assert "fewer than 2" in found.kappa_note
    assert (found.agreement is None) == (n == 0)


def test_one_category_leaves_kappa_undefined() -> None:
    found = agreement(np.ones(9), np.ones(9))
    assert (found.agreement, found.kappa, found.kappa_note) == (1.0, None, ONE_CATEGORY)


def test_a_rater_who_always_says_the_same_agrees_by_chance_alone() -> None:
    found = agreement(np.array([1.0, 1, 1, 1, 0]), np.ones(5))
    assert (found.kappa, found.kappa_ci95) == (0.0, None)
    assert "no spread" in found.kappa_note


FLEISS_1971 = [
    [0, 0, 0, 6, 0], [0, 3, 0, 0, 3], [0, 1, 4, 0, 1], [0, 0, 0, 0, 6], [0, 3, 0, 3, 0], [2, 0, 4, 0, 0],
    [0, 0, 4, 0, 2], [2, 0, 3, 1, 0], [2, 0, 0, 4, 0], [0, 0, 0, 0, 6], [1, 0, 0, 5, 0], [1, 1, 0, 4, 0],
    [0, 3, 3, 0, 0], [1, 0, 0, 5, 0], [0, 2, 0, 3, 1], [0, 0, 5, 0, 1], [3, 0, 0, 1, 2], [5, 1, 0, 0, 0],
    [0, 2, 0, 4, 0], [1, 0, 2, 0, 3], [0, 0, 0, 0, 6], [0, 1, 0, 5, 0], [0, 2, 0, 1, 3], [2, 0, 0, 4, 0],
    [1, 0, 0, 4, 1], [0, 5, 0, 1, 0], [4, 0, 0, 0, 2], [0, 2, 0, 4, 0], [1, 0, 5, 0, 0], [0, 0, 0, 0, 6],
]  # fmt: skip


def test_fleiss_example_of_1971() -> None:
    """Thirty patients, six psychiatrists, five diagnoses: kappa .430."""
    labels = np.array([np.repeat(np.arange(5.0), counts) for counts in FLEISS_1971])
    found = many_raters(labels)
    assert (found.n, found.n_raters) == (30, 6)
    assert found.kappa == pytest.approx(0.430, abs=5e-4)
    left = [fleiss_kappa(np.delete(np.array(FLEISS_1971), row, axis=0)) for row in range(30)]
    se = np.sqrt(29 / 30 * np.sum((np.array(left) - np.mean(left)) ** 2))
    assert found.ci95 == pytest.approx((found.kappa - 2.04523 * se, found.kappa + 2.04523 * se), abs=1e-5)


def test_outputs_that_not_all_raters_labelled_take_no_part_in_fleiss_kappa() -> None:
    whole = np.array([[1, 1, 1], [1, 0, 1], [0, 0, 0], [0, 0, 1], [1, 1, 1]], dtype=np.float64)
    holed = np.vstack([whole, [[1, NAN, 0]]])
    assert many_raters(holed) == many_raters(whole)


@pytest.mark.parametrize(
    "labels",
    [np.ones((6, 3)), np.ones((1, 3)), np.full((4, 3), NAN), np.array([[1.0, 1, 1]] * 5 + [[0.0, 0, 0]])[:5]],
)
def test_many_raters_without_a_kappa_say_why(labels: FloatArray) -> None:
    found = many_raters(labels)
    assert found.kappa is None
    assert found.note


def test_one_odd_output_leaves_no_interval() -> None:
    found = many_raters(np.array([[1.0, 1, 1]] * 5 + [[0.0, 0, 0]]))
    assert (found.kappa, found.ci95) == (pytest.approx(1.0), None)


def test_the_majority_and_its_ties() -> None:
    labels = np.array([[1, 1, 0], [1, 0, NAN], [0, NAN, NAN], [NAN, NAN, NAN], [2, 1, 0]])
    assert majority(labels) == pytest.approx([1, NAN, 0, NAN, NAN], nan_ok=True)
    assert majority(np.full((2, 1), NAN)) == pytest.approx([NAN, NAN], nan_ok=True)
