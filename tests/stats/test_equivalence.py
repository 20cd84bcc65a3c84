"""Two one-sided tests."""

from __future__ import annotations

import pytest
from scipy import stats as sps

from eval_tasks.stats.equivalence import tost_newcombe_p, tost_p
from eval_tasks.stats.paired import Table, newcombe10


def test_tost_is_the_larger_of_two_one_sided_p_values():
    expected = max(sps.t.sf((0.002 + 0.01) / 0.004, 500), sps.t.cdf((0.002 - 0.01) / 0.004, 500))
    assert tost_p(0.002, 0.004, 500, 0.01) == pytest.approx(expected)
    assert tost_p(0.011, 0.0001, 500, 0.01) == 1.0


def test_two_alike_differences_do_not_prove_equivalence():
    assert tost_p(0.0, 0.0, 1, 0.01) == 0.25


def test_newcombe_tost_is_where_the_interval_touches_the_margin():
    table = Table(both=1600, b=70, c=60, neither=270)
    p = tost_newcombe_p(table, 0.02)
    low, high = newcombe10(table, 1 - 2 * p)
    assert max(high, -low) == pytest.approx(0.02, abs=1e-6)
    assert 0 < p < 0.05


def test_identical_runs_are_equivalent_only_with_items_enough():
    assert tost_newcombe_p(Table(both=80, b=0, c=0, neither=20), 0.01) > 0.05
    assert tost_newcombe_p(Table(both=8000, b=0, c=0, neither=2000), 0.01) < 1e-6
    assert tost_newcombe_p(Table(both=0, b=0, c=0, neither=0), 0.01) == 1.0
    assert tost_newcombe_p(Table(both=10, b=5, c=0, neither=0), 0.01) == 1.0
