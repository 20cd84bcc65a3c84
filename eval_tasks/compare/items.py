"""Two versions of a benchmark -> the ids that stand for one item in the one and for another in the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eval_tasks.records import BenchmarkVersion, Item

if TYPE_CHECKING:
    from eval_tasks.store import Store


def changed_items(store: Store, a: BenchmarkVersion, b: BenchmarkVersion) -> frozenset[str]:
    """Ids in both versions whose item is not the same, such as one with a corrected answer: no pair, whatever its id.

    Read only where the items' digests differ, a few items in memory.
    """
    if a.items_digest == b.items_digest or a.items_blob == b.items_blob:
        return frozenset()
    return frozenset(one.item_id for one, other in _shared(store, a, b) if not is_same_item(one, other))


def is_same_item(a: Item, b: Item) -> bool:
    """Whether target and every column that both have agree: a column that one version lacks changes no question."""
    return a.target == b.target and all(a.fields[name] == b.fields[name] for name in a.fields.keys() & b.fields.keys())


def _shared(store: Store, a: BenchmarkVersion, b: BenchmarkVersion) -> Iterator[tuple[Item, Item]]:
    """Both items of each id that both have; stored items come in the order of their ids."""
    items = store.blobs.iter_items(a.items_blob)
    one = next(items, None)
    for other in store.blobs.iter_items(b.items_blob):
        while one is not None and one.item_id < other.item_id:
            one = next(items, None)
        if one is not None and one.item_id == other.item_id:
            yield one, other
