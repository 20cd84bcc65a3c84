"""The best of many: its optimism against theory, a score without it, and a set that holds the true best."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as sps

from eval_tasks.errors import UserError
from eval_tasks.stats.selection import best_of_many, expected_maximum, halves, optimism


def tolerance(rate: float, repetitions: int) -> float:
    return 3.5 * math.sqrt(rate * (1 - rate) / repetitions)


def checkpoints(rng, true, n, psi, p=0.6):
    """K checkpoints on n items: a share of items is hard or easy for all, on the others each draws for itself.

    Two equal ones disagree on a share psi of the items; `true` are their scores.
    """
    noisy = rng.random(n) < 2 * psi
    shared = (rng.random(n) < p).astype(float)
    shift = (np.asarray(true) - p) / (2 * psi) + 0.5
    drawn = (rng.random((len(true), n)) < shift[:, None]).astype(float)
    return np.where(noisy, drawn, shared)


def test_the_best_of_48_equal_checkpoints_looks_eight_tenths_of_a_point_better() -> None:
    """statistics.md: 48 equal checkpoints, n = 2,000, psi = 5 %."""
    assert optimism(48, math.sqrt(0.05 / (2 * 2_000))) == pytest.approx(0.008, abs=0.0002)


@pytest.mark.parametrize(("k", "expected"), [(1, 0.0), (2, 1 / math.sqrt(math.pi)), (3, 1.5 / math.sqrt(math.pi))])
def test_the_expected_maximum_is_the_textbooks(k, expected) -> None:
    assert expected_maximum(k) == pytest.approx(expected, abs=1e-9)


def test_optimism_and_shrinkage_hold_in_simulation_where_all_are_equal() -> None:
    rng, repetitions, k, n = np.random.default_rng(1), 200, 48, 2_000
    excess, shrunk, said, sets = [], [], [], []
    for _ in range(repetitions):
        values = checkpoints(rng, np.full(k, 0.6), n, 0.05)
        found = best_of_many(values)
        excess.append(found.scores[found.best] - found.scores.mean())
        shrunk.append(found.shrunk[found.best] - found.scores.mean())
        said.append(found.optimism)
        sets.append(bool(found.in_set[0]))
    error = 3.5 * np.std(excess) / math.sqrt(repetitions)
    assert np.mean(excess) == pytest.approx(np.mean(said), abs=error)
    assert np.mean(excess) == pytest.approx(0.008, abs=0.0004)
    assert 0 <= np.mean(shrunk) < 0.1 * np.mean(excess), "nearly all of it is taken off"
    assert np.mean(sets) >= 0.95 - tolerance(0.95, repetitions), "any of them is as good as the best"


def test_where_checkpoints_differ_the_shrunk_score_is_free_of_the_luck_and_the_set_holds_the_best() -> None:
    rng, repetitions, k, n = np.random.default_rng(2), 400, 12, 1_500
    raw, corrected, held, sizes = [], [], 0, []
    for _ in range(repetitions):
        true = 0.6 + rng.normal(0, 0.006, k)
        # The items are drawn once for all: what they share is no part of the comparison, so it is taken off.
        found = best_of_many(checkpoints(rng, true, n, 0.08))
        common = found.scores.mean() - true.mean()
        raw.append(found.scores[found.best] - common - true[found.best])
        corrected.append(found.shrunk[found.best] - common - true[found.best])
        held += bool(found.in_set[int(np.argmax(true))])
        sizes.append(int(found.in_set.sum()))
    error = 3.5 * np.std(corrected) / math.sqrt(repetitions)
    assert np.mean(raw) > 0.003
    assert np.mean(corrected) == pytest.approx(0, abs=error)
    assert held / repetitions >= 0.95 - tolerance(0.95, repetitions)
    assert np.mean(sizes) < k


def test_one_that_is_clearly_best_stands_alone() -> None:
    rng = np.random.default_rng(3)
    found = best_of_many(checkpoints(rng, [0.6, 0.6, 0.6, 0.66], 4_000, 0.08))
    assert found.best == 3
    assert found.in_set.tolist() == [False, False, False, True]


def test_equal_rows_have_no_noise_and_all_stay() -> None:
    found = best_of_many(np.tile([0.0, 1.0, 1.0, 0.0], (3, 1)))
    assert found.noise_sd == found.optimism == found.spread_sd == 0.0
    assert found.in_set.all() and found.shrunk.tolist() == [0.5] * 3


def test_the_error_of_two_is_the_paired_one_and_clusters_widen_it() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.normal(0, 1, 300), rng.normal(0, 1, 300)
    found = best_of_many(np.stack([a, b]))
    assert found.noise_sd * math.sqrt(2) == pytest.approx(sps.sem(a - b))
    clusters = np.repeat(np.arange(30), 10)
    shift = np.repeat(rng.normal(0, 1, 30), 10)
    pair = np.stack([a + shift, b])
    assert best_of_many(pair, clusters=clusters).noise_sd > best_of_many(pair).noise_sd


def test_weights_make_a_ratio() -> None:
    values, weights = np.array([[1.0, 3.0], [2.0, 2.0]]), np.array([3.0, 1.0])
    assert best_of_many(values, weights).scores.tolist() == [1.5, 2.0]


@pytest.mark.parametrize("shape", [(1, 5), (3, 1)])
def test_a_choice_needs_two_of_each(shape) -> None:
    with pytest.raises(UserError, match="a choice needs two of each"):
        best_of_many(np.ones(shape))
    with pytest.raises(UserError, match="one cluster"):
        best_of_many(np.ones((2, 4)), clusters=np.zeros(4, dtype=np.int64))


def test_halves_are_alike_in_each_stratum_and_do_not_depend_on_the_order() -> None:
    ids = [f"i{k:03d}" for k in range(101)]
    strata = [None if k < 3 else "even" if k % 2 else "odd" for k in range(101)]
    first = halves(ids, strata)
    for name in ("even", "odd"):
        inside = [first[k] for k in range(101) if strata[k] == name]
        assert abs(2 * sum(inside) - len(inside)) <= 1
    assert abs(2 * first.sum() - 101) == 1
    turned = halves(ids[::-1], strata[::-1])
    assert dict(zip(ids[::-1], turned, strict=True)) == dict(zip(ids, first, strict=True))
    assert (halves(ids, strata, salt="other") != first).any()


def test_items_of_one_cluster_stay_together() -> None:
    units = [f"passage {k // 5}" for k in range(100)]
    first = halves(units, [None] * 100).reshape(20, 5)
    assert (first.all(axis=1) | ~first.any(axis=1)).all()
    assert first[:, 0].sum() == 10
