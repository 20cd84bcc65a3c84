"""What each look may spend: never more than the level, however long the training run."""

from __future__ import annotations

import pytest

from eval_tasks.errors import UserError
from eval_tasks.stats.looks import HORIZON, lags, spent_at


def test_the_sum_stays_below_the_level_however_many_looks_there_are() -> None:
    within = sum(spent_at(look, 0.01) for look in range(1, HORIZON + 1))
    assert within == pytest.approx(0.009)
    assert within < sum(spent_at(look, 0.01) for look in range(1, 20 * HORIZON)) < 0.01


def test_every_look_of_the_horizon_may_spend_the_same_so_that_their_order_cannot_matter() -> None:
    assert {spent_at(look, 0.01) for look in range(1, HORIZON + 1)} == {0.01 * 0.9 / HORIZON}


def test_looks_count_from_one() -> None:
    with pytest.raises(UserError, match="look number 0"):
        spent_at(0, 0.01)


@pytest.mark.parametrize(
    ("n_earlier", "expected"), [(0, []), (1, [1]), (3, [1, 2]), (4, [1, 2, 4]), (1_439, [2**k for k in range(11)])]
)
def test_a_look_is_held_against_those_1_2_4_back(n_earlier: int, expected: list[int]) -> None:
    assert lags(n_earlier) == expected
