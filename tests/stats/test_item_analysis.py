"""What an item says of the runs: planted faults are found, sound items are not accused, training runs count once."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from eval_tasks.stats.item_analysis import MIN_GROUPS, analyse_items
from eval_tasks.stats.item_response import calibrate_2pl


def answers(seed, n_runs, n_items, n_wrong_way, theta=None):
    """Right or wrong; the first `n_wrong_way` items have their gold answer wrong: the abler, the more often wrong."""
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal(n_runs) if theta is None else theta
    a, b = np.exp(rng.normal(0.2, 0.35, n_items)), rng.normal(0, 1.2, n_items)
    a[:n_wrong_way] *= -1
    return (rng.random((len(theta), n_items)) < special.expit(a * (theta[:, None] - b))).astype(float)


def analysed(right, groups=None, chance=None, seen=None):
    seen = np.ones_like(right, dtype=bool) if seen is None else seen
    n_right = right.sum(axis=0)
    varying = np.flatnonzero((n_right > 0) & (n_right < seen.sum(axis=0)))
    fit = calibrate_2pl(right[:, varying], seen[:, varying])
    groups = np.arange(len(right)) if groups is None else groups
    return analyse_items(right, seen, groups, fit, varying, chance)


def test_items_with_a_wrong_gold_answer_are_found_and_no_others():
    found = false = 0
    for seed in range(5):
        q = analysed(answers(seed, 100, 600, 24)).q
        found += int((q[:24] <= 0.05).sum())
        false += int((q[24:] <= 0.05).sum())
    assert found >= 0.7 * 5 * 24
    assert false <= 0.05 * (found + false)


def test_items_that_have_nothing_to_do_with_ability_are_not_accused_beyond_the_level():
    """Half of the items are coin flips, the worst that is not negative: of what is accused few are so by chance."""
    accused = 0
    for seed in range(20):
        right = answers(seed, 60, 400, 0)
        right[:, :200] = (np.random.default_rng(100 + seed).random((60, 200)) < 0.5).astype(float)
        accused += int((analysed(right).q <= 0.05).any())
    assert accused / 20 <= 0.05 + 3.5 * math.sqrt(0.05 * 0.95 / 20)


def test_two_runs_far_below_the_rest_accuse_no_item():
    """Guesses of two broken runs on items that are too hard for all others."""
    rng = np.random.default_rng(3)
    theta = np.r_[rng.standard_normal(28), -6.0, -6.0]
    right = answers(4, 30, 300, 0, theta)
    right[:, :10] = 0.0
    right[-2:, :10] = 1.0
    assert not (analysed(right).q[:10] <= 0.05).any()


def test_checkpoints_of_one_training_run_count_once():
    """Ten checkpoints that err together are one observation: the same shares and links as of their means."""
    base = answers(5, 15, 200, 8)
    once = analysed(base)
    many = analysed(np.repeat(base, 10, axis=0), np.repeat(np.arange(15), 10))
    assert np.array_equal(once.n_groups, many.n_groups)
    assert many.share_low == pytest.approx(once.share_low)
    both = ~np.isnan(once.q) & ~np.isnan(many.q)
    assert both.sum() > 150 and many.q[both] == pytest.approx(once.q[both], abs=0.05)


def test_few_training_runs_are_not_tested():
    found = analysed(answers(6, 40, 100, 4), np.arange(40) % (MIN_GROUPS - 1), chance=0.25)
    assert np.isnan(found.q).all() and np.isnan(found.chance_q).all()
    assert not np.isnan(found.link).all(), "the link itself is shown"


def test_shares_below_chance():
    right = answers(7, 60, 100, 0)
    right[:, 0] = 0.0
    right[:, 1] = (np.random.default_rng(8).random(60) < 0.25).astype(float)
    found = analysed(right, chance=0.25)
    assert found.chance_q[0] < 1e-4
    assert found.chance_q[1] > 0.05
    assert np.isnan(found.link[0]) and found.share[0] == 0 and found.share_low[0] == 0


def test_intervals_of_shares_and_links_hold_what_they_are_of():
    found = analysed(answers(9, 80, 200, 5))
    assert (found.share_low <= found.share).all() and (found.share <= found.share_high).all()
    there = ~np.isnan(found.link)
    assert (found.link_low[there] < found.link[there]).all() and (found.link[there] < found.link_high[there]).all()
    assert found.share_high - found.share_low == pytest.approx(0.21, abs=0.17)


def test_items_that_few_saw():
    right = answers(10, 40, 80, 0)
    seen = np.ones_like(right, dtype=bool)
    seen[5:, 0] = False
    right[~seen] = 0.0
    found = analysed(right, seen=seen)
    assert found.n_groups[0] == 5 and np.isnan(found.q[0])
    assert found.n_groups[1] == 40
