"""One score: Wilson, t, CR1, ratio, strata, macro, and what missing items do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_tasks.stats.intervals import (
    NOTHING,
    estimate,
    macro_average,
    pooled,
    proportion,
    stratified,
    widen_for_missing,
    wilson,
)

FRACTION = (0.0, 1.0)


def test_wilson_gives_the_published_interval_of_newcombe_1998():
    # Newcombe 1998 (two-sided single proportion), Table I, method 3: 81/263, 15/148, 0/20, 1/29.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson(1, 29) == pytest.approx((0.0061, 0.1718), abs=5e-5)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999])
def test_wilson_is_scipys(confidence):
    from scipy import stats as sps

    for k, n in ((0, 3), (3, 3), (7, 31), (999, 1000)):
        theirs = sps.binomtest(k, n).proportion_ci(confidence, "wilson")
        assert wilson(k, n, confidence) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_a_score_of_410_of_500():
    result = proportion(410, 500)
    assert result.ci == pytest.approx((0.783925, 0.851195), abs=1e-6)
    assert result.se == pytest.approx(0.0171986, abs=1e-7)


def test_one_item_has_an_interval_and_no_standard_error():
    result = proportion(0, 1)
    assert (result.score, result.n, result.se) == (0.0, 1, None)
    assert result.ci == pytest.approx((0.0, 0.793451), abs=1e-6)


@pytest.mark.parametrize("binary", [True, False])
def test_no_item_gives_none_everywhere(binary):
    result = estimate(np.array([]), binary=binary, bounds=FRACTION)
    assert (result.score, result.n, result.se, result.ci) == (None, 0, None, None)


def test_one_continuous_item_has_neither_error_nor_interval():
    result = estimate(np.array([1.25]), binary=False)
    assert (result.score, result.n, result.se, result.ci) == (1.25, 1, None, None)


def test_proportions_of_the_oracle(oracle):
    for case in oracle["proportion"]:
        result = proportion(case["k"], case["n"])
        assert result.ci == pytest.approx(tuple(case["wilson"]), abs=1e-12)
        assert result.se == (None if case["se_n1"] is None else pytest.approx(case["se_n1"], abs=1e-12))


def test_mean_loss_of_the_oracle(oracle):
    case = oracle["mean_loss"]
    result = estimate(np.array(case["x"]), binary=False)
    assert result.score == pytest.approx(case["mean"])
    assert result.se == pytest.approx(case["se"], abs=1e-12)
    assert result.ci == pytest.approx(tuple(case["ci"]), abs=1e-9)


def test_clustered_items_of_the_oracle(oracle):
    case = oracle["clustered"]
    result = estimate(np.array(case["y"], dtype=float), None, np.array(case["cluster"]), binary=True, bounds=FRACTION)
    assert result.se == pytest.approx(case["se_cr1"], abs=1e-12)
    assert result.ci == pytest.approx(tuple(case["ci_cr1_t"]), abs=1e-9)
    assert result.method == "clustered mean, CR1, t(11)"


def test_doubling_every_item_within_its_cluster_changes_no_clustered_error():
    rng = np.random.default_rng(1)
    values = rng.integers(0, 2, 30).astype(float)
    clusters = np.arange(30)
    single = pooled(values)
    double = pooled(np.repeat(values, 2), None, np.repeat(clusters, 2))
    assert double.se == pytest.approx(single.se)
    assert double.ci == pytest.approx(single.ci)


def test_one_cluster_has_no_error():
    result = pooled(np.array([0.0, 1.0, 1.0]), None, np.zeros(3, dtype=np.int64), bounds=FRACTION)
    assert (result.n, result.se, result.ci) == (3, None, None)


def test_pooled_metric_is_the_ratio_of_sums_with_its_linearised_error():
    values, weights = np.array([1.0, 0.5, 0.0, 1.0]), np.array([1.0, 2.0, 3.0, 2.0])
    result = estimate(values, weights, binary=False, bounds=FRACTION)
    assert result.score == pytest.approx(4.0 / 8.0)
    # by hand: residuals w (v - 1/2) = .5, 0, -1.5, 1; squares sum to 3.5; sqrt(4/3 * 3.5) / 8
    assert result.se == pytest.approx(np.sqrt(4 / 3 * 3.5) / 8)
    assert result.method == "ratio, t(3)"


def test_equal_weights_are_no_weights():
    values = np.array([1.0, 0.0, 1.0, 1.0])
    assert estimate(values, np.full(4, 3.0), binary=True) == proportion(3, 4)


def test_items_without_spread_still_have_a_width():
    ones = np.ones(25)
    clustered = estimate(ones, None, np.repeat(np.arange(5), 5), binary=True, bounds=FRACTION)
    assert clustered.ci == pytest.approx(wilson(5, 5))
    weighted = estimate(ones, np.arange(1.0, 26.0), binary=False, bounds=FRACTION)
    assert weighted.ci == pytest.approx(wilson(25, 25))


def test_interval_of_a_fraction_stays_within_0_and_1():
    values = np.concatenate([np.ones(19), [0.0]])
    result = estimate(values, None, np.arange(20), binary=True, bounds=FRACTION)
    assert result.ci is not None and result.ci[1] == 1.0


def test_strata_explain_spread_between_them():
    strata = np.repeat([0, 1], 10)
    mixed = np.array([0.0, 1.0] * 10)
    # by hand: s_h^2 = 10 * .25 / 9 in each stratum; SE^2 = sum (1/2)^2 s_h^2 / 10
    by_hand = np.sqrt(2 * 0.25 * (2.5 / 9) / 10)
    assert stratified(mixed, strata).se == pytest.approx(by_hand)
    result = stratified(np.array([0.0] * 9 + [1.0] + [1.0] * 9 + [0.0]), strata)
    # s_h^2 = .9 * .1 * 10 / 9 = .1 in each stratum
    assert result.se == pytest.approx(np.sqrt(2 * 0.25 * 0.1 / 10)) and result.method == "stratified mean, t(18)"
    assert result.ci == pytest.approx((0.5 - 2.1009 * result.se, 0.5 + 2.1009 * result.se), abs=1e-5)
    assert stratified(np.array([]), strata[:0]) == NOTHING
    assert stratified(np.array([1.0]), strata[:1]).se is None


def test_a_stratified_proportion_is_wilsons_at_its_effective_size():
    values, strata = np.array([1.0] * 90 + [0.0] * 10 + [1.0] * 10 + [0.0] * 90), np.repeat([0, 1], 100)
    result = estimate(values, None, None, strata, binary=True, bounds=FRACTION)
    # by hand: s_h^2 = .09 * 100 / 99; SE^2 = 2 * .25 * s_h^2 / 100; n' = .25 / SE^2 + 1 = 551 of 200 items
    assert result.se**2 == pytest.approx(0.5 * 0.09 / 99)
    assert result.ci == pytest.approx(wilson(551 / 2, 551)) and (result.score, result.n) == (0.5, 200)
    assert result.method == "Wilson, stratified"


def test_one_stratum_is_none():
    values = np.array([1.0] * 41 + [0.0] * 9)
    one = estimate(values, None, None, np.zeros(50, dtype=np.int64), binary=True, bounds=FRACTION)
    plain = proportion(41, 50)
    assert (one.se, *one.ci) == pytest.approx((plain.se, *plain.ci))


def test_where_no_stratum_has_a_spread_the_plain_interval_stands():
    values, strata = np.array([0.0] * 10 + [1.0] * 10), np.repeat([0, 1], 10)
    result = estimate(values, None, None, strata, binary=True, bounds=FRACTION)
    assert result.ci == wilson(10, 20) and result.method.endswith("no spread within strata")


def test_strata_of_one_item_borrow_the_spread_over_all():
    values = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    result = estimate(values, None, None, np.arange(5), binary=True, bounds=FRACTION)
    assert result.se == pytest.approx(proportion(3, 5).se)


def test_clusters_come_before_strata():
    values, codes = np.array([0.0, 1.0] * 10), np.repeat(np.arange(5), 4)
    clustered = estimate(values, None, codes, binary=True, bounds=FRACTION)
    assert estimate(values, None, codes, codes // 2, binary=True, bounds=FRACTION) == clustered


def test_a_ratio_within_strata_leaves_out_the_spread_between_them():
    rng = np.random.default_rng(3)
    strata = np.repeat([0, 1], 50)
    values, weights = strata + rng.normal(0, 0.1, 100), rng.uniform(1, 3, 100)
    plain, inside = estimate(values, weights, binary=False), estimate(values, weights, None, strata, binary=False)
    assert inside.score == plain.score and inside.se < plain.se / 3 and inside.method == "stratified ratio, t(98)"


def test_missing_items_of_a_stratified_score_widen_to_the_plain_ends():
    values, strata = np.array([1.0, 0.0] * 25), np.repeat([0, 1], 25)
    known = estimate(values, None, None, strata, binary=True, bounds=FRACTION)
    wide = widen_for_missing(known, values, n_missing=10, binary=True, bounds=FRACTION)
    assert wide.ci == pytest.approx((wilson(25, 60)[0], wilson(35, 60)[1])) and wide.se == known.se


def test_macro_average_has_its_own_error():
    result = macro_average(np.array([0.5, 0.7]), np.array([0.03, 0.04]))
    assert result.score == pytest.approx(0.6)
    assert result.se == pytest.approx(0.025)


def test_missing_items_widen_from_all_wrong_to_all_right():
    values = np.array([1.0] * 41 + [0.0] * 9)
    known = estimate(values, binary=True, bounds=FRACTION)
    wide = widen_for_missing(known, values, n_missing=10, binary=True, bounds=FRACTION)
    assert wide.score == known.score and wide.n == 50 and wide.se == known.se
    assert wide.ci == pytest.approx((wilson(41, 60)[0], wilson(51, 60)[1]))
    assert "widened for 10 missing (all wrong to all right)" in wide.method


def test_all_items_missing_leaves_no_score_and_almost_the_whole_range():
    nothing = np.array([])
    wide = widen_for_missing(NOTHING, nothing, n_missing=20, binary=True, bounds=FRACTION)
    assert wide.score is None and wide.ci == (0.0, 1.0)
    assert widen_for_missing(NOTHING, nothing, n_missing=20, binary=False).ci is None


def test_missing_losses_are_put_at_the_extremes_that_were_seen():
    values = np.arange(1.0, 51.0)
    known = estimate(values, binary=False)
    wide = widen_for_missing(known, values, n_missing=2, binary=False)
    assert wide.ci[0] == pytest.approx(estimate(np.append(values, [1.0, 1.0]), binary=False).ci[0])
    assert wide.ci[1] == pytest.approx(estimate(np.append(values, [50.0, 50.0]), binary=False).ci[1])
    assert wide.ci[0] < known.ci[0] < known.ci[1] < wide.ci[1]
    assert "lowest to highest value seen" in wide.method


@given(st.integers(1, 200), st.integers(0, 40), st.data())
def test_widening_never_narrows(n, n_missing, data):
    k = data.draw(st.integers(0, n))
    values = np.array([1.0] * k + [0.0] * (n - k))
    known = estimate(values, binary=True, bounds=FRACTION)
    wide = widen_for_missing(known, values, n_missing=n_missing, binary=True, bounds=FRACTION)
    assert 0 <= wide.ci[0] <= known.ci[0] <= known.score <= known.ci[1] <= wide.ci[1] <= 1


def test_wilson_covers_as_often_as_it_says():
    """Exact coverage, summed over all outcomes; Wilson's mean over p is 95 % and its dips stay above 90 %."""
    from scipy import stats as sps

    n, intervals = 100, np.array([wilson(k, 100) for k in range(101)])
    coverage = []
    for p in np.linspace(0.05, 0.95, 181):
        inside = (intervals[:, 0] <= p) & (p <= intervals[:, 1])
        coverage.append(sps.binom.pmf(np.arange(n + 1), n, p)[inside].sum())
    assert np.mean(coverage) == pytest.approx(0.95, abs=0.005)
    assert min(coverage) > 0.90
