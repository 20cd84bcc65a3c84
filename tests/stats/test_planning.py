"""What a plan can resolve."""

from __future__ import annotations

import numpy as np
import pytest

from eval_tasks.errors import UserError
from eval_tasks.stats.paired import paired_continuous
from eval_tasks.stats.planning import binary_resolution, continuous_resolution, seeds_mde, seeds_needed


def test_the_plan_of_the_oracle(oracle):
    row = next(row for row in oracle["plan"] if row["n"] == 2_000)
    found = binary_resolution(2_000, 0.05, target=0.01)
    assert found.mde == pytest.approx(row["paired_0.05"]) and found.n_needed == 3_923


def test_three_seeds_a_side_see_1_8_points_of_six_tenths_of_seed_noise():
    assert seeds_mde(3, 0.006) == pytest.approx(0.0177, abs=5e-5)
    assert seeds_needed(seeds_mde(3, 0.006), 0.006) == 3
    assert seeds_needed(0.01, 0.006) == 7 and seeds_mde(7, 0.006) <= 0.01 < seeds_mde(6, 0.006)


def test_more_than_a_thousand_seeds_are_no_plan():
    assert seeds_needed(1e-6, 0.006) is None


def test_items_needed_resolve_the_target_and_one_less_does_not():
    needed = binary_resolution(500, 0.08, target=0.012).n_needed
    assert binary_resolution(needed, 0.08, target=None).mde <= 0.012
    assert binary_resolution(needed - 1, 0.08, target=None).mde > 0.012


def test_losses_are_planned_from_the_spread_of_their_differences():
    found = continuous_resolution(400, 0.2, target=0.01)
    assert found.mde == pytest.approx(0.028, abs=2e-4) and found.n_needed == pytest.approx(3_150, rel=0.01)
    assert continuous_resolution(1, 0.2, target=None) is None


def test_four_differences_in_five_of_the_stated_size_are_found():
    """2,000 repetitions: the share found has a standard error of .009."""
    rng, n, sd = np.random.default_rng(11), 60, 0.2
    mde = continuous_resolution(n, sd, target=None).mde
    found = [paired_continuous(rng.normal(mde, sd, n), np.zeros(n)).p <= 0.05 for _ in range(2_000)]
    assert np.mean(found) == pytest.approx(0.8, abs=3.5 * 0.009)


@pytest.mark.parametrize(
    ("n", "psi", "target", "said"),
    [
        (0, 0.1, None, "0 items"),
        (9, 0.0, None, "discordance 0"),
        (9, 1.1, None, "discordance"),
        (9, 0.1, 0.0, "target"),
    ],
)
def test_impossible_plans_are_named(n, psi, target, said):
    with pytest.raises(UserError, match=said):
        binary_resolution(n, psi, target=target)
    with pytest.raises(UserError, match="1 seeds"):
        seeds_mde(1, 0.006)
