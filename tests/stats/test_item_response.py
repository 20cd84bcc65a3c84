"""The two-parameter model: it finds what was put in, in any order and at any number of threads, and abilities by it.

A tolerance is 3.5 standard errors of a share at that number of repetitions.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import special

from eval_tasks.digests import digest_bytes
from eval_tasks.errors import DataError
from eval_tasks.stats import item_response
from eval_tasks.stats.item_response import ability, ability_difference, calibrate_2pl, reliability


def simulated(seed, n_runs, n_items, spread=0.35):
    """(abilities, a, c, right) of runs with standard normal abilities; every item is right here and wrong there."""
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal(n_runs)
    a, b = np.exp(rng.normal(0.2, spread, n_items)), rng.normal(0, 1.2, n_items)
    right = (rng.random((n_runs, n_items)) < special.expit(a * (theta[:, None] - b))).astype(float)
    kept = (right.sum(axis=0) > 0) & (right.sum(axis=0) < n_runs)
    return theta, a[kept], (-a * b)[kept], right[:, kept]


def on_the_scale_of(theta, a, c):
    """Parameters when the abilities of these very runs have mean 0 and variance 1."""
    return a * theta.std(), c + a * theta.mean()


def test_known_parameters_are_recovered():
    theta, a, c, right = simulated(1, 2_000, 200)
    fit = calibrate_2pl(right)
    a, c = on_the_scale_of(theta, a, c)
    assert np.corrcoef(fit.discrimination, a)[0, 1] > 0.97
    assert np.corrcoef(fit.intercept, c)[0, 1] > 0.995
    assert fit.discrimination.mean() == pytest.approx(a.mean(), rel=0.02)
    assert np.corrcoef(fit.ability, theta)[0, 1] > 0.98


def test_errors_cover():
    theta, a, c, right = simulated(2, 2_000, 200)
    fit = calibrate_2pl(right)
    a, c = on_the_scale_of(theta, a, c)
    for found, true, se in ((fit.discrimination, a, fit.discrimination_se), (fit.intercept, c, fit.intercept_se)):
        covered = np.abs(found - true) < 1.96 * se
        assert covered.mean() == pytest.approx(0.95, abs=3.5 * math.sqrt(0.95 * 0.05 / len(a)))


GIRTH_A = [1.281, 1.647, 1.453, 0.845, 1.858, 0.967]
GIRTH_B = [1.110, 2.691, 0.100, 0.009, 0.873, 2.135]


def test_parameters_are_those_of_another_implementation():
    """The first items of girth 0.8.0 (twopl_mml) on these answers; its quadrature is coarser and it has no prior."""
    _, _, _, right = simulated(7, 3_000, 25)
    fit = calibrate_2pl(right)
    assert fit.discrimination[:6] == pytest.approx(GIRTH_A, abs=0.06)
    assert -fit.intercept[:6] / fit.discrimination[:6] == pytest.approx(GIRTH_B, abs=0.06)


def test_few_runs_give_no_wild_discriminations():
    """An item that splits 40 runs perfectly would have an infinite one by maximum likelihood."""
    theta, _, _, right = simulated(3, 40, 300)
    perfect = (theta > np.median(theta)).astype(float)
    fit = calibrate_2pl(np.column_stack([right, perfect]))
    assert 1 < fit.discrimination[-1] < 4
    assert np.isfinite(fit.intercept).all()


def test_answers_that_were_not_seen_are_left_out():
    theta, a, c, right = simulated(4, 1_500, 60)
    seen = np.random.default_rng(5).random(right.shape) < 0.7
    fit = calibrate_2pl(np.where(seen, right, 0.0), seen)
    a, c = on_the_scale_of(theta, a, c)
    assert np.corrcoef(fit.discrimination, a)[0, 1] > 0.93
    assert np.abs(fit.intercept - c).mean() < 0.15


def test_the_order_of_the_runs_moves_no_bit_of_the_weights():
    _, _, _, right = simulated(6, 60, 150)
    rng = np.random.default_rng(1)
    fit, turned = calibrate_2pl(right), calibrate_2pl(right[rng.permutation(60)])
    assert np.array_equal(fit.discrimination, turned.discrimination)
    assert np.array_equal(fit.intercept, turned.intercept)
    assert fit.discrimination_se == pytest.approx(turned.discrimination_se)


_DIGEST = """
import numpy as np
from tests.stats.test_item_response import digest
print(digest())
"""


def digest():
    _, _, _, right = simulated(8, 130, 900)
    fit = calibrate_2pl(right)
    parts = (fit.discrimination, fit.intercept, fit.discrimination_se, fit.intercept_se, fit.ability)
    return digest_bytes(b"".join(np.ascontiguousarray(x).tobytes() for x in parts))


def test_the_number_of_threads_moves_no_bit():
    found = set()
    for threads in ("1", "3"):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {**os.environ, **dict.fromkeys(names, threads), "PYTHONPATH": os.pathsep.join(sys.path)}
        made = subprocess.run(
            [sys.executable, "-c", _DIGEST], env=environment, capture_output=True, text=True, check=True
        )
        found.add(made.stdout.strip())
    assert found == {digest()}


def test_sums_are_exact_in_any_order():
    rng = np.random.default_rng(9)
    values = item_response._summable(-np.abs(rng.normal(0, 9, 100_000)).clip(0, 60), largest=64, terms=100_000)
    forward, back = np.cumsum(values)[-1], np.cumsum(values[::-1])[-1]
    assert forward == back == math.fsum(values)


def test_what_does_not_settle_is_an_error(monkeypatch):
    monkeypatch.setattr(item_response, "ROUNDS", 2)
    with pytest.raises(DataError, match="has not settled after 2 rounds"):
        calibrate_2pl(simulated(10, 50, 40)[3])


def test_reliability_is_that_of_kr_20_and_nothing_for_noise():
    _, _, _, right = simulated(16, 200, 80)
    n, p, total = right.shape[1], right.mean(axis=0), right.sum(axis=1)
    kr20 = n / (n - 1) * (1 - (p * (1 - p)).sum() / total.var(ddof=1))
    assert reliability(right, np.ones_like(right, bool)) == pytest.approx(kr20, abs=0.005)
    noise = (np.random.default_rng(17).random((200, 80)) < 0.6).astype(float)
    assert reliability(noise, np.ones_like(noise, bool)) < 0.3
    assert reliability(np.ones((20, 5)), np.ones((20, 5), bool)) == 0.0


# --- abilities ------------------------------------------------------------------------------------------------------


def test_an_ability_is_near_the_truth_and_its_interval_covers():
    rng = np.random.default_rng(11)
    a, c = np.exp(rng.normal(0.2, 0.35, 400)), rng.normal(0, 1.4, 400)
    repetitions, covered, errors = 400, 0, []
    for _ in range(repetitions):
        theta = rng.normal()
        found = ability((rng.random(400) < special.expit(a * theta + c)).astype(float), a, c)
        covered += found.ci95[0] <= theta <= found.ci95[1]
        errors.append(found.theta - theta)
    assert covered / repetitions == pytest.approx(0.95, abs=3.5 * math.sqrt(0.95 * 0.05 / repetitions))
    assert abs(np.mean(errors)) < 3.5 * np.std(errors) / math.sqrt(repetitions)


def test_all_right_and_all_wrong_are_finite():
    a, c = np.full(20, 1.2), np.linspace(-2, 2, 20)
    best, worst = ability(np.ones(20), a, c), ability(np.zeros(20), a, c)
    assert 2 < best.theta < 8 and best.theta == pytest.approx(-worst.theta)
    assert best.se > 0.5


def test_items_that_point_the_wrong_way_take_no_part():
    rng = np.random.default_rng(12)
    a, c = np.r_[np.full(50, 1.0), np.full(5, -1.0)], np.zeros(55)
    right = (rng.random(55) < 0.7).astype(float)
    other = right.copy()
    other[50:] = 1 - other[50:]
    assert ability(right, a, c).theta == ability(other, a, c).theta
    assert ability(right, a, c).n == 50
    assert ability(np.ones(3), np.array([1.0, -1.0, 0.0]), np.zeros(3)) is None


def test_clusters_widen_the_error():
    rng = np.random.default_rng(13)
    a, c = np.full(200, 1.0), np.zeros(200)
    codes = np.repeat(np.arange(20), 10)
    right = np.repeat((rng.random(20) < 0.5).astype(float), 10)
    assert ability(right, a, c, codes).se > 2 * ability(right, a, c).se
    assert ability(right, a, c, codes).df == 19


def test_a_difference_is_paired_and_covers():
    rng = np.random.default_rng(14)
    n, repetitions, covered, ratio = 400, 300, 0, []
    a, c = np.exp(rng.normal(0.2, 0.35, n)), rng.normal(0, 1.4, n)
    for _ in range(repetitions):
        # Items surprise both runs alike: the pairs hold less noise than two runs apart.
        surprise = rng.random(n)
        own = [np.where(rng.random(n) < 0.5, surprise, rng.random(n)) for _ in range(2)]
        x, y = (
            ability((u < special.expit(a * theta + c)).astype(float), a, c)
            for u, theta in zip(own, (0.3, 0.0), strict=True)
        )
        delta, se, ends = ability_difference(x, y)
        covered += ends[0] <= 0.3 <= ends[1]
        ratio.append(se / math.hypot(x.se, y.se))
        assert delta == x.theta - y.theta
    assert covered / repetitions == pytest.approx(0.95, abs=3.5 * math.sqrt(0.95 * 0.05 / repetitions))
    assert np.mean(ratio) < 0.95


def test_the_gain_is_that_of_simulation():
    """The plain score needs `gain` times the items: the variance of theta as either says it, by the slope of both."""
    rng = np.random.default_rng(15)
    n, repetitions = 300, 3_000
    a, c = np.exp(rng.normal(0.2, 0.5, n)), rng.normal(0, 1.0, n)
    p = special.expit(c)
    right = (rng.random((repetitions, n)) < p).astype(float)
    stated = ability(right[0], a, c).gain
    by_score = right.mean(axis=1).var() / (a * p * (1 - p)).mean() ** 2
    by_weights = np.var([ability(row, a, c).theta for row in right[:1_000]])
    assert stated > 1.1
    assert by_score / by_weights == pytest.approx(stated, rel=0.2)
