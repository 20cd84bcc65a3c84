"""How amounts and reasons read."""

from __future__ import annotations

import numpy as np
import pytest

from eval_tasks.compare import compare_scores
from eval_tasks.compare.sentence import amount, span
from tests.compare.arms import LOSS, SIDES, arms, rule


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.01, "1 point"), (0.0234, "2.34 points"), (-0.01, "-1 point"), (0.1, "10 points"), (-0.00001, "0 points")],
)
def test_fractions_are_points(value, text):
    assert amount(value, "fraction") == text


def test_other_units_keep_their_name():
    assert amount(0.01234567, "bits per byte") == "0.01235 bits per byte"
    assert span((-0.5, 0.25), "bits per byte") == "-0.5 to 0.25 bits per byte"


def test_a_loss_that_fell_is_better_and_reads_so():
    rng = np.random.default_rng(4)
    base = rng.gamma(2, 0.5, 300)
    lower = rule(metric="bits", direction="lower")
    listed = [arms(list(base - 0.05 + rng.normal(0, 0.05, 300)), list(base), metric="bits", info=LOSS)]
    comparison = compare_scores(listed, SIDES, rule=lower)
    assert comparison.verdict == "A better"
    assert comparison.reason.startswith("on bench bits, A is 0.0")
    assert " bits per byte lower than B (A - B, 95 % interval -0.0" in comparison.reason


def test_non_inferiority_says_what_was_shown():
    from tests.compare.arms import of_cells

    reason = compare_scores([of_cells(780, 30, 30, 160)], SIDES, rule=rule("non_inferiority", margin=0.05)).reason
    assert "so A is not worse than B by 5 points or more; rule 'ship' (non-inferiority within 5 points" in reason
