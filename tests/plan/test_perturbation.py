"""Batches as ever, and batches that are anything else on purpose."""

from __future__ import annotations

from eval_tasks.plan.perturbation import batches_of
from eval_tasks.records import Item

ITEMS = [Item(item_id=f"i{n:03d}", fields={}) for n in range(100)]


def test_a_plan_has_neighbours_in_batches_of_one_size() -> None:
    assert [len(batch) for batch in batches_of(ITEMS, 32)] == [32, 32, 32, 4]
    assert [item for batch in batches_of(ITEMS, 32) for item in batch] == ITEMS
    assert batches_of([], 32) == [] == batches_of([], 32, "x")


def test_a_perturbed_one_has_every_item_once_in_batches_of_other_sizes() -> None:
    batches = batches_of(ITEMS, 32, "night")
    flat = [item for batch in batches for item in batch]
    assert flat != ITEMS and sorted(flat, key=lambda item: item.item_id) == ITEMS
    assert 1 <= min(map(len, batches)) < max(map(len, batches)) <= 32
    assert batches_of(ITEMS, 32, "night") == batches
    assert batches_of(ITEMS, 32, "another night") != batches
