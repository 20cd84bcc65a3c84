"""An item -> its reference answers as text: one, or several of which any will do. Knows no scorer."""

from __future__ import annotations

from eval_tasks.errors import DataError
from eval_tasks.records import Item


def references_of(item: Item) -> list[str]:
    """The item's reference answers. Raises DataError naming the item when it has none."""
    references = item.target if isinstance(item.target, list | tuple) else [item.target]
    if not references or any(reference is None for reference in references):
        raise DataError(f"item {item.item_id!r} has no reference answer: its target is {item.target!r}")
    return [str(reference) for reference in references]
