"""Do marks concentrate?"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as sps

from eval_tasks.stats.concentration import concentration_p


def p_of(marked, sizes, **how):
    return concentration_p(np.array(marked), np.array(sizes), **how)


def test_marks_in_one_group_concentrate_and_even_ones_do_not():
    assert p_of([20, 1, 1, 2], [50, 50, 50, 50]) == pytest.approx(1 / 5_000)
    assert p_of([6, 6, 6, 6], [50, 50, 50, 50]) == 1.0


def test_two_groups_are_fishers_exact_test():
    """Equal groups: the orders of both statistics agree. 4,999 draws have a standard error of at most .0071."""
    theirs = sps.fisher_exact([[9, 21], [3, 27]]).pvalue
    assert p_of([9, 3], [30, 30]) == pytest.approx(theirs, abs=3.5 * np.sqrt(theirs * (1 - theirs) / 4_999))


def test_what_cannot_be_tested_is_none():
    for marked, sizes in (([0, 0], [5, 5]), ([5, 5], [5, 5]), ([2], [9]), ([], []), ([2, 0], [9, 0])):
        assert p_of(np.array(marked, dtype=int), np.array(sizes, dtype=int)) is None


def test_thousands_of_groups_have_fewer_draws():
    sizes = np.full(60_000, 3)
    marked = (np.arange(60_000) % 30 == 0).astype(int) * 3
    assert concentration_p(marked, sizes) == pytest.approx(1 / 200)


def test_the_same_seed_gives_the_same_p():
    assert p_of([5, 2, 1], [20, 20, 20]) == p_of([5, 2, 1], [20, 20, 20])


def test_false_alarms_stay_at_the_level():
    """300 null data sets of 12 groups: at 5 % the share found has a standard error of .0126."""
    rng = np.random.default_rng(4)
    sizes = rng.integers(5, 60, size=12)
    found = [
        concentration_p(rng.multivariate_hypergeometric(sizes, 30), sizes, draws=499, seed=k) <= 0.05
        for k in range(300)
    ]
    assert np.mean(found) <= 0.05 + 3 * 0.0126
