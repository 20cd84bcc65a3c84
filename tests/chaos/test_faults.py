"""The order of faults is the seed's."""

from __future__ import annotations

from collections import Counter

from tests.chaos.faults import KINDS, schedule


def test_a_seed_gives_one_order_and_another_seed_another() -> None:
    assert schedule(7, 40) == schedule(7, 40)
    assert [fault.kind for fault in schedule(7, 40)] != [fault.kind for fault in schedule(8, 40)]


def test_every_kind_comes_as_often_as_the_others() -> None:
    counts = Counter(fault.kind for fault in schedule(3, 5 * len(KINDS)))
    assert counts == dict.fromkeys(KINDS, 5)
