"""Adjusted p-values, attainable sizes, and what moves by chance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from eval_tasks.stats.multiplicity import (
    attainable_size,
    benjamini_hochberg,
    benjamini_yekutieli,
    false_coverage_confidence,
    holm,
    null_expectation,
)
from eval_tasks.stats.paired import mcnemar_exact, mcnemar_mid_p

# Benjamini and Hochberg 1995, section 3.2: fifteen p-values of a myocardial infarction study.
P_1995 = [
    0.0001,
    0.0004,
    0.0019,
    0.0095,
    0.0201,
    0.0278,
    0.0298,
    0.0344,
    0.0459,
    0.324,
    0.4262,
    0.5719,
    0.6528,
    0.759,
    1,
]


def test_benjamini_hochberg_1995_rejects_four():
    q = benjamini_hochberg(np.array(P_1995))
    assert int((q <= 0.05).sum()) == 4
    assert q[3] == pytest.approx(0.035625) and q[6] == pytest.approx(0.4470 / 7, abs=1e-4)


def test_q_values_of_the_oracle(oracle):
    q = benjamini_hochberg(np.array(oracle["bh"]["p"], dtype=float))
    assert q == pytest.approx(oracle["bh"]["q"], abs=1e-12)
    assert benjamini_yekutieli(np.array(oracle["bh"]["p"], dtype=float)) == pytest.approx(oracle["bh"]["by"], abs=1e-12)


@pytest.mark.parametrize(("adjust", "method"), [(benjamini_hochberg, "bh"), (benjamini_yekutieli, "by")])
def test_q_values_are_scipys(adjust, method):
    rng = np.random.default_rng(3)
    for n in (1, 2, 7, 50):
        p = np.round(rng.random(n) ** 3, 2)  # with ties, zeros and ones
        assert adjust(p) == pytest.approx(stats.false_discovery_control(p, method=method), rel=1e-14)


def test_null_expectation_of_the_oracle(oracle):
    assert null_expectation([None] * 50) == pytest.approx(oracle["null_expectation"]["mean"])


def test_what_was_not_tested_takes_no_part():
    with_gap = np.array([0.01, np.nan, 0.04, 0.03])
    without = np.array([0.01, 0.04, 0.03])
    for adjust in (benjamini_hochberg, benjamini_yekutieli, holm):
        adjusted = adjust(with_gap)
        assert np.isnan(adjusted[1])
        assert adjusted[[0, 2, 3]] == pytest.approx(adjust(without))
        assert np.isnan(adjust(np.array([np.nan]))).all() and len(adjust(np.array([]))) == 0


def test_holm_steps_down_and_never_falls():
    assert holm(np.array([0.01, 0.04, 0.03, 0.005])) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm(np.array([0.6, 0.7])) == pytest.approx([1.0, 1.0])


def test_attainable_sizes_of_the_oracle(oracle):
    for n, size in oracle["mcnemar_size"].items():
        assert attainable_size(int(n)) == pytest.approx(size["midp"], abs=1e-12)
        assert attainable_size(int(n), mid_p=False) == pytest.approx(size["exact"], abs=1e-12)


@pytest.mark.parametrize("mid_p", [True, False])
def test_attainable_size_is_what_enumeration_gives(mid_p):
    from scipy import stats as sps

    test = mcnemar_mid_p if mid_p else mcnemar_exact
    for n in (0, 1, 2, 5, 6, 9, 24, 61):
        by_hand = sum(sps.binom.pmf(b, n, 0.5) for b in range(n + 1) if test(b, n - b) <= 0.05)
        assert attainable_size(n, mid_p=mid_p) == pytest.approx(by_hand, abs=1e-12)


def test_five_discordant_items_cannot_be_significant_by_the_exact_test():
    assert [attainable_size(n, mid_p=False) for n in range(6)] == [0.0] * 6
    assert attainable_size(6, mid_p=False) == pytest.approx(0.03125)


def test_null_expectation_adds_sizes_and_takes_alpha_where_the_test_is_continuous():
    assert null_expectation([4, 6, None]) == pytest.approx(0.0 + 0.03125 + 0.05)
    assert null_expectation([None] * 50) == pytest.approx(2.5)
    assert null_expectation([]) == 0.0


def test_confidence_after_selection():
    assert false_coverage_confidence(2, 10) == pytest.approx(0.99)
    assert false_coverage_confidence(10, 10) == pytest.approx(0.95)
