"""What the log is told of the speed, and how often."""

from __future__ import annotations

import pytest

from eval_tasks.pace import Pace, duration


class Clock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_a_line_has_items_speed_and_the_time_left_by_the_plans_cost() -> None:
    clock = Clock()
    pace = Pace(n_items=1096, n_done=1000, cost_left=9000, now=clock)
    clock.seconds += 20
    assert pace.add(32, 4000, 3000) == "1,032 of 1,096 items, 1.6 items/s, 200 tokens/s, about 40 s left"
    clock.seconds += 20
    pace.add(32, 4000, 3000)
    clock.seconds += 20
    assert pace.add(32, 4000, 3000) == "1,096 of 1,096 items, 1.6 items/s, 200 tokens/s"


def test_there_is_one_line_in_some_seconds_and_one_at_once() -> None:
    clock = Clock()
    pace = Pace(n_items=320, n_done=0, cost_left=320, every_seconds=10, now=clock)
    said = []
    for _ in range(10):
        clock.seconds += 4
        said.append(bool(pace.add(32, 320, 32)))
    assert said == [True, False, False, True, False, False, True, False, False, True]


def test_a_clock_that_stands_still_divides_by_nothing() -> None:
    pace = Pace(n_items=2, n_done=0, cost_left=2, now=lambda: 5.0)
    assert "0 s left" in pace.add(1, 1, 1)


@pytest.mark.parametrize(("seconds", "text"), [(0, "0 s"), (89.4, "89 s"), (700, "12 min"), (12000, "3 h 20 min")])
def test_durations_are_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text
