from __future__ import annotations

import random
from collections import Counter

import pytest

from eval_tasks.errors import UserError
from eval_tasks.prompts.few_shot import Shots
from eval_tasks.records import FewShot, Item


def _examples(n: int = 40) -> list[Item]:
    return [Item(item_id=f"{i:08d}", fields={"q": f"example {i}", "subject": "ab"[i % 2]}) for i in range(n)]


def _item(item_id: str, subject: str = "a") -> Item:
    return Item(item_id=item_id, fields={"q": item_id, "subject": subject})


def test_first_takes_the_files_order_whatever_order_they_come_in() -> None:
    examples = _examples()
    random.Random(3).shuffle(examples)
    chosen = Shots("toy", FewShot(k=3), examples).chosen(_item("x"))
    assert [e.fields["q"] for e in chosen] == ["example 0", "example 1", "example 2"]


def test_match_takes_only_the_items_own_group() -> None:
    shots = Shots("toy", FewShot(k=2, match="subject"), _examples())
    assert [e.fields["q"] for e in shots.chosen(_item("x", "b"))] == ["example 1", "example 3"]


def test_seeded_is_a_function_of_the_item_alone() -> None:
    examples = _examples()
    few_shot = FewShot(k=5, select="seeded", seed=7)
    shots = Shots("toy", few_shot, examples)
    alone = {i: shots.chosen(_item(str(i))) for i in range(30)}
    random.Random(3).shuffle(examples)
    renumbered = [Item(item_id=f"{n:08d}", fields=e.fields) for n, e in enumerate(examples)]
    again = Shots("toy", few_shot, renumbered)
    for i in reversed(range(30)):
        assert [e.fields for e in again.chosen(_item(str(i)))] == [e.fields for e in alone[i]]
    other_seed = Shots("toy", FewShot(k=5, select="seeded", seed=8), examples)
    assert sum(other_seed.chosen(_item(str(i))) != alone[i] for i in range(30)) >= 29


def test_seeded_draws_are_even() -> None:
    shots = Shots("toy", FewShot(k=4, select="seeded"), _examples(40))
    counts = Counter(e.item_id for i in range(2000) for e in shots.chosen(_item(f"item-{i}")))
    # 200 draws of each expected, standard deviation 13.4: five of them to each side
    assert len(counts) == 40
    assert min(counts.values()) > 132
    assert max(counts.values()) < 268


def test_an_item_is_never_its_own_example() -> None:
    examples = _examples(4)
    for select in ("first", "seeded"):
        shots = Shots("toy", FewShot(k=3, select=select), examples)  # type: ignore[arg-type]
        for example in examples:
            assert example.fields["q"] not in [
                e.fields["q"] for e in shots.chosen(Item(item_id="x", fields=dict(example.fields)))
            ]


def test_too_few_examples_is_an_error() -> None:
    with pytest.raises(
        UserError, match=r"item 'x': few_shot.k is 5, and there are 2 examples whose 'subject' is \"a\""
    ):
        Shots("toy", FewShot(k=5, match="subject"), _examples(4)).chosen(_item("x"))
    with pytest.raises(UserError, match="there are 0 examples"):
        Shots("toy", FewShot(k=1, match="subject"), _examples(4)).chosen(_item("x", "c"))


def test_without_few_shot_there_are_none() -> None:
    assert Shots("toy", None, _examples()).chosen(_item("x")) == []
