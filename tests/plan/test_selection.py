from __future__ import annotations

import itertools
import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from eval_tasks.plan import choose_items
from eval_tasks.records import Item


def _items(sizes: dict[str, int]) -> list[Item]:
    return [
        Item(item_id=f"{stratum}-{n:03d}", fields={}, stratum=stratum) for stratum, m in sizes.items() for n in range(m)
    ]


def _ids(items: list[Item]) -> set[str]:
    return {item.item_id for item in items}


def test_the_choice_is_fixed_sorted_and_not_the_first() -> None:
    items = _items({"a": 50, "b": 50})
    chosen = choose_items(items, 20, seed=1)
    assert [i.item_id for i in chosen] == sorted(_ids(chosen))
    assert len(chosen) == 20
    random.Random(0).shuffle(items)
    assert choose_items(items, 20, seed=1) == chosen
    assert choose_items(items, 20, seed=2) != chosen
    assert max(int(i.item_id[-3:]) for i in chosen) > 25


def test_all_items_without_a_number_or_with_too_large_a_one() -> None:
    items = _items({"a": 3})[::-1]
    assert choose_items(items, None, 0) == choose_items(items, 9, 0) == items[::-1]


def test_strata_have_their_share() -> None:
    counts = Counter(i.stratum for i in choose_items(_items({"a": 600, "b": 300, "c": 100}), 100, seed=0))
    assert counts == {"a": 60, "b": 30, "c": 10}


def test_a_smaller_choice_is_part_of_a_larger_one() -> None:
    items = _items({"a": 70, "b": 20, "c": 7})
    choices = [_ids(choose_items(items, n, 0)) for n in range(1, 97)]
    assert all(small < large for small, large in itertools.pairwise(choices))


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(st.sampled_from("abcde"), st.integers(1, 40), min_size=1),
    st.integers(1, 60),
    st.sampled_from("abcdef"),
    st.integers(0, 5),
)
def test_a_new_item_displaces_at_most_one(sizes: dict[str, int], n: int, stratum: str, seed: int) -> None:
    items = _items(sizes)
    n = min(n, len(items))
    new = Item(item_id="new", fields={}, stratum=stratum)
    before, after = _ids(choose_items(items, n, seed)), _ids(choose_items([*items, new], n, seed))
    assert len(after) == len(before) == n
    assert len(before - after) <= 1
