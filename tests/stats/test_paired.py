"""Two arms on the same items: McNemar, Newcombe, paired t, clusters, sign flips."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_tasks.stats.paired import (
    Table,
    mcnemar_exact,
    mcnemar_mid_p,
    newcombe10,
    paired_binary,
    paired_continuous,
    sign_flip_p,
    t_test_p,
    table_of,
)


def arrays(both: int, b: int, c: int, neither: int):
    a_right = np.array([1.0] * both + [1.0] * b + [0.0] * c + [0.0] * neither)
    b_right = np.array([1.0] * both + [0.0] * b + [1.0] * c + [0.0] * neither)
    return a_right, b_right


def test_fagerland_2013_airway_example():
    # Fagerland, Lydersen, Laake 2013, Table 2 (Bentur et al. 2009): 1, 1 / 7, 12; exact .070, mid-p .039.
    assert mcnemar_exact(1, 7) == pytest.approx(0.0703, abs=5e-5)
    assert mcnemar_mid_p(1, 7) == pytest.approx(0.0391, abs=5e-5)


def test_fagerland_2013_complete_response_example():
    # ibid., Table 3 (Cavo et al. 2012): 59, 6 / 16, 80; exact .053, mid-p .035.
    assert mcnemar_exact(6, 16) == pytest.approx(0.0525, abs=5e-5)
    assert mcnemar_mid_p(6, 16) == pytest.approx(0.0347, abs=5e-5)


def test_newcombe_1998_method_10_with_an_empty_cell():
    # Fagerland, Lydersen, Laake 2014, Table V: the airway example gives -.507 to -.026.
    assert newcombe10(Table(both=1, b=1, c=7, neither=12)) == pytest.approx((-0.507, -0.026), abs=5e-4)


def test_the_design_table():
    table = Table(both=40, b=12, c=3, neither=45)
    assert mcnemar_mid_p(12, 3) == pytest.approx(0.021271, abs=1e-6)
    assert newcombe10(table) == pytest.approx((0.01372, 0.16371), abs=5e-6)


def test_the_interval_may_disagree_with_the_test():
    assert mcnemar_mid_p(7, 1) == pytest.approx(0.039, abs=5e-4)
    assert newcombe10(Table(both=403, b=7, c=1, neither=89))[0] == pytest.approx(-0.0003, abs=5e-5)


def test_nothing_discordant_is_p_1_and_an_interval_with_a_width():
    estimate = paired_binary(*arrays(80, 0, 0, 20))
    assert (estimate.delta, estimate.p, estimate.p_exact) == (0.0, 1.0, 1.0)
    assert estimate.interval() == pytest.approx((-0.02937, 0.02937), abs=5e-6)


@pytest.mark.parametrize("n", [0, 1, 7, 250])
def test_mid_p_is_1_when_b_equals_c(n):
    assert mcnemar_mid_p(n, n) == 1.0


def test_all_right_all_wrong_and_all_discordant_are_defined():
    assert newcombe10(Table(both=10, b=0, c=0, neither=0))[0] < 0
    assert newcombe10(Table(both=0, b=0, c=0, neither=10))[1] > 0
    low, high = newcombe10(Table(both=0, b=10, c=0, neither=0))
    assert 0 < low < high == 1.0
    assert newcombe10(Table(both=0, b=0, c=0, neither=0)) is None


def test_paired_tables_of_the_oracle(oracle):
    for case in oracle["paired_tables"]:
        estimate = paired_binary(*arrays(*case["table"]))
        assert estimate.delta == pytest.approx(case["diff"])
        assert estimate.p == pytest.approx(case["midp"], abs=1e-12)
        assert estimate.p_exact == pytest.approx(case["exact"], abs=1e-12)
        assert estimate.interval() == pytest.approx(tuple(case["newcombe10_cc"]), abs=1e-12)


def test_paired_losses_of_the_oracle(oracle):
    case = oracle["paired_continuous"]
    a, b = np.array(case["x"]), np.array(case["y"])
    estimate = paired_continuous(a, b)
    assert estimate.delta == pytest.approx(case["mean"])
    assert estimate.se == pytest.approx(case["se"], abs=1e-12)
    assert estimate.p == pytest.approx(case["p_t"], abs=1e-12)
    assert estimate.interval() == pytest.approx(tuple(case["ci"]), abs=1e-9)
    # 9,999 draws: the standard error of a share near .011 is .00105; four of them
    assert sign_flip_p(a - b) == pytest.approx(case["p_signflip"], abs=0.0042)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.integers(0, 60))
def test_swapping_the_arms_turns_the_sign_and_nothing_else(both, b, c, neither):
    if both + b + c + neither == 0:
        return
    a_right, b_right = arrays(both, b, c, neither)
    assert table_of(a_right, b_right) == Table(both=both, b=b, c=c, neither=neither)
    one, other = paired_binary(a_right, b_right), paired_binary(b_right, a_right)
    assert one.delta == -other.delta and one.p == other.p
    low, high = one.interval()
    assert (-high, -low) == pytest.approx(other.interval(), abs=1e-12)
    assert low <= one.delta <= high


def test_clustered_pairs_decide_by_clusters_and_keep_mid_p_beside():
    a, b = arrays(20, 10, 2, 8)
    alone = paired_binary(a, b, np.arange(40))
    assert alone.se == pytest.approx((a - b).std(ddof=1) / np.sqrt(40))
    double = paired_binary(np.repeat(a, 2), np.repeat(b, 2), np.repeat(np.arange(40), 2))
    assert double.p == pytest.approx(alone.p) and double.p_mid == mcnemar_mid_p(20, 4)
    assert double.method == "clustered pairs, CR2, t(39)"


def test_clusters_without_any_flip_have_a_width():
    a, b = arrays(30, 0, 0, 10)
    estimate = paired_binary(a, b, np.repeat(np.arange(8), 5))
    assert estimate.p == 1.0
    low, high = estimate.interval()
    assert low < 0 < high and high > 0.1


def test_strata_move_the_error_and_not_mcnemars_test():
    rng = np.random.default_rng(8)
    strata = np.repeat([0, 1], 200)
    a = (rng.random(400) < np.where(strata == 0, 0.9, 0.3)).astype(float)
    b = (rng.random(400) < np.where(strata == 0, 0.3, 0.9)).astype(float)
    plain, inside = paired_binary(a, b), paired_binary(a, b, None, strata)
    assert (inside.p, inside.p_exact, inside.interval()) == (plain.p, plain.p_exact, plain.interval())
    d = a - b
    by_hand = np.sqrt(sum(0.25 * d[strata == h].var(ddof=1) / 200 for h in (0, 1)))
    assert inside.se == pytest.approx(by_hand) and inside.se < 0.8 * plain.se and inside.df == 398
    assert inside.influences @ inside.influences == pytest.approx(inside.se**2)


def test_differences_within_strata_have_their_own_t_interval():
    rng = np.random.default_rng(9)
    strata = np.repeat([0, 1, 2], 40)
    x = rng.normal(strata, 0.2)
    found = paired_continuous(x, np.zeros(120), strata=strata)
    assert found.method == "paired t on differences within strata, t(117)"
    low, high = found.interval()
    assert (high - low) / 2 == pytest.approx(found.se * 1.98045, rel=1e-4) and found.se < 0.03
    clusters = np.arange(120) // 4
    assert (
        paired_continuous(x, np.zeros(120), clusters, strata=strata).se
        == paired_continuous(x, np.zeros(120), clusters).se
    )


def test_one_cluster_or_one_pair_cannot_be_tested():
    assert paired_continuous(np.array([1.0]), np.array([0.5])).p is None
    assert paired_binary(*arrays(3, 2, 0, 1), np.zeros(6, dtype=np.int64)).p is None


def test_differences_that_are_all_alike_are_not_infinitely_sure():
    assert t_test_p(0.1, 0.0, 2) == 0.5
    assert t_test_p(0.1, 1e-18, 10) == 2 * 0.5**10
    assert t_test_p(0.0, 0.0, 10) == 1.0


def test_pooled_difference_uses_each_arms_own_weights():
    a, b = np.array([1.0, 0.5, 0.0]), np.array([0.0, 0.5, 0.0])
    weights = np.array([1.0, 2.0, 5.0])
    estimate = paired_continuous(a, b, None, (weights, weights))
    assert estimate.delta == pytest.approx(2 / 8 - 1 / 8)
    residuals = weights * (a - b - 1 / 8)
    assert estimate.se == pytest.approx(np.sqrt(3 / 2 * (residuals @ residuals)) / 8)


def test_sign_flips_are_exact_for_few_items():
    assert sign_flip_p(np.array([1.0, 1.0, 1.0])) == 0.25
    assert sign_flip_p(np.zeros(5)) == 1.0
    assert sign_flip_p(np.array([1.0, 1.0, 1.0, 1.0]), np.array([0, 0, 1, 1])) == 0.5


def test_sign_flips_repeat():
    differences = np.random.default_rng(5).normal(0.2, 1, 200)
    assert sign_flip_p(differences, flips=999) == sign_flip_p(differences, flips=999)
