"""Do the recipes differ? Seed variance beside the pairs'."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as sps

from eval_tasks.stats.influence import pooled_influences, standard_error
from eval_tasks.stats.multiplicity import benjamini_hochberg
from eval_tasks.stats.recipes import (
    Added,
    CommonVariance,
    Spread,
    both_arms,
    extrapolated,
    flip_variance,
    moderated,
    recipe_estimate,
    seeds_settling,
    spread,
)


def close(found, expected):
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("case", "change"), [("same_scale", lambda v: v), ("extrapolated_tau05", lambda v: extrapolated(v, 0.5))]
)
def test_verdict_example_of_the_oracle(oracle, case, change):
    example = oracle["verdict_example"]
    given, expected = example["inputs"], example[case]
    flips = [flip_variance(psi, n) for psi, n in zip(given["psi"], given["n"], strict=True)]
    close(flips, given["idio"])
    own = [CommonVariance(total=v, flips=f, df=given["K"] - 1) for v, f in zip(given["v"], flips, strict=True)]
    seeds = moderated(own, prior_df=given["d0"])
    rows = [
        recipe_estimate(d, row["se_pair"], [Added(variance=change(seed), times=2)])
        for d, row, seed in zip(given["D"], expected, seeds, strict=True)
    ]
    for row, want in zip(rows, expected, strict=True):
        close((row.se, row.df, row.p, row.mde), (want["se_total"], want["df"], want["p"], want["mde80"]))
        close(row.ci, want["ci"])
    q = benjamini_hochberg(np.array([row.p for row in rows]))
    close(list(q), [want["q"] for want in expected])
    better = ["A_BETTER" if row.delta > 0 else "B_BETTER" for row in rows]
    called = [name if x <= 0.05 else "INDISTINGUISHABLE" for name, x in zip(better, q, strict=True)]
    assert called == [want["verdict"] for want in expected]


def test_without_seeds_the_example_is_the_pairs_alone(oracle):
    example = oracle["verdict_example"]
    none = [Added(variance=CommonVariance(total=0.0, flips=0.0, df=10), times=2)]
    for d, row in zip(example["inputs"]["D"], example["naive"], strict=True):
        found = recipe_estimate(d, row["se_pair"], none)
        assert math.isinf(found.df)
        assert (found.se, found.p) == pytest.approx((row["se_total"], row["p"]), rel=1e-6)


def test_seed_variance_below_its_flips_adds_nothing():
    assert CommonVariance(total=1e-6, flips=2e-6, df=10).common == 0.0


def test_one_benchmark_alone_has_no_prior_and_two_have_each_other():
    one = CommonVariance(total=4e-5, flips=1e-5, df=2)
    assert moderated([one]) == [one]
    first, second = moderated([one, CommonVariance(total=1e-5, flips=1e-5, df=2)])
    assert (first.df, second.df) == (4, 4)
    assert first.total == pytest.approx((2 * (1e-5 + 1.5e-5) + 2 * 4e-5) / 4)
    assert moderated([]) == []


def test_a_spread_is_the_variance_of_the_scores_and_the_pairwise_discordance():
    rng = np.random.default_rng(1)
    values = (rng.random((4, 300)) < 0.6).astype(float)
    found = spread(values)
    pairs = [(s, t) for s in range(4) for t in range(s)]
    assert found.raw == pytest.approx(np.var(values.mean(axis=1), ddof=1))
    assert found.psi == pytest.approx(np.mean([(values[s] != values[t]).mean() for s, t in pairs]))
    assert found.flips == flip_variance(found.psi, 300) and found.n_runs == 4


def test_flips_of_clusters_and_weights_are_half_the_mean_squared_paired_error():
    rng = np.random.default_rng(2)
    values = rng.gamma(2, 1, (3, 120))
    clusters = rng.integers(0, 15, 120)
    weights = rng.integers(1, 9, 120).astype(float)
    pairs = [(0, 1), (0, 2), (1, 2)]
    for w, c in ((None, clusters), (weights, None), (weights, clusters)):
        errors = []
        for s, t in pairs:
            influence = [pooled_influences(values[k], w)[1] for k in (s, t)]
            errors.append(standard_error(influence[0] - influence[1], c)[0])
        assert spread(values, w, c).flips == pytest.approx(np.mean(np.square(errors)) / 2)


def test_two_arms_of_three_runs_have_four_degrees_and_welchs_variance():
    a, b = Spread(n_runs=3, raw=4e-5, psi=0.1, flips=1e-5), Spread(n_runs=3, raw=2e-5, psi=0.1, flips=3e-5)
    variance, times = both_arms(a, b)
    assert (variance.df, times) == (pytest.approx(4), pytest.approx(2 / 3))
    assert times * variance.total == pytest.approx(4e-5 / 3 + 2e-5 / 3)
    assert variance.flips == pytest.approx(2e-5)
    uneven, times = both_arms(Spread(n_runs=9, raw=4e-5, psi=0, flips=0), b)
    assert times * uneven.total == pytest.approx(4e-5 / 9 + 2e-5 / 3)
    assert 2 < uneven.df < 10


def test_the_pairs_own_degrees_count():
    added = [Added(variance=CommonVariance(total=1e-12, flips=0.0, df=5))]
    assert recipe_estimate(0.02, 0.01, added, pair_df=9).df == pytest.approx(9, rel=1e-6)


def test_seeds_that_settle_a_difference():
    seed = CommonVariance(total=0.006**2, flips=0.0, df=10)
    # Without item noise: the smallest K with (t(.975, 2 (K - 1)) + z(.8)) .006 sqrt(2 / K) <= .01.
    wanted = next(
        k
        for k in range(2, 50)
        if (sps.t.ppf(0.975, 2 * (k - 1)) + sps.norm.ppf(0.8)) * 0.006 * math.sqrt(2 / k) <= 0.01
    )
    assert seeds_settling(0.01, steady=0.0, flips=0.0, seed=seed) == wanted
    assert seeds_settling(0.01, steady=0.02**2, flips=0.0, seed=seed) is None, "the items are too few"
    none = CommonVariance(total=0.0, flips=0.0, df=1)
    assert seeds_settling(0.01, steady=1e-8, flips=0.0, seed=none) == 2
