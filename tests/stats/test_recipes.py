"""Do the recipes differ? Seed variance beside the pairs'."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as sps

from eval_tasks.stats.multiplicity import benjamini_hochberg
from eval_tasks.stats.recipes import (
    SeedVariance,
    extrapolated,
    flip_variance,
    moderated,
    multi_seed,
    recipe_estimate,
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
    seeds = moderated(given["v"], flips, n_seeds=given["K"], prior_df=given["d0"])
    rows = [
        recipe_estimate(d, row["se_pair"], change(seed))
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
    none = SeedVariance(total=0.0, flips=0.0, df=10)
    for d, row in zip(example["inputs"]["D"], example["naive"], strict=True):
        found = recipe_estimate(d, row["se_pair"], none)
        assert math.isinf(found.df)
        assert (found.se, found.p) == pytest.approx((row["se_total"], row["p"]), rel=1e-6)


def test_seed_variance_below_its_flips_adds_nothing():
    assert SeedVariance(total=1e-6, flips=2e-6, df=10).common == 0.0


def test_one_benchmark_alone_is_its_own_prior():
    (found,) = moderated([4e-5], [1e-5], n_seeds=3)
    assert (found.total, found.df) == (pytest.approx(4e-5), 8)


def test_several_seeds_per_arm_are_welchs_test():
    a, b = np.array([0.61, 0.62, 0.60]), np.array([0.58, 0.60, 0.57, 0.59])
    delta, se, df = multi_seed(a, b)
    theirs = sps.ttest_ind(a, b, equal_var=False)
    assert (delta / se, df) == pytest.approx((theirs.statistic, theirs.df))
    assert multi_seed(np.array([0.5, 0.5]), np.array([0.5, 0.5])) == (0.0, 0.0, 2.0)
