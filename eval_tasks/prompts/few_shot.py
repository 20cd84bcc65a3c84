"""Which worked examples stand before an item: a function of the item alone, never of order, subset or sharding.

An example with the item's own content is never taken. ``first`` means the order of the examples' file. ``seeded``
ranks examples by a 64-bit mix of blake3(seed, item_id) and blake3(the example's content), so that neither the
examples' order nor their number of neighbours matters; ranking 7,000 examples takes well under a millisecond.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from eval_tasks.digests import digest_bytes
from eval_tasks.errors import UserError
from eval_tasks.records import FewShot, Item

_EVERY = ""


class Shots:
    """The examples of one benchmark, ready to be chosen from."""

    def __init__(self, benchmark: str, few_shot: FewShot | None, items: Sequence[Item]) -> None:
        self._benchmark = benchmark
        self._few_shot = few_shot
        self._pools: dict[str, list[tuple[Item, str]]] = {}
        self._ranks: dict[str, npt.NDArray[np.uint64]] = {}
        if few_shot is None:
            return
        for item in sorted(items, key=lambda item: item.item_id):
            self._pools.setdefault(self._group(item), []).append((item, _content(item)))
        for group, pool in self._pools.items():
            self._ranks[group] = np.array([int(digest[:16], 16) for _, digest in pool], dtype=np.uint64)

    def chosen(self, item: Item) -> list[Item]:
        """The examples for `item`, in the order they stand in its prompt. Raises UserError when there are too few."""
        if self._few_shot is None:
            return []
        group = self._group(item)
        pool = self._pools.get(group, [])
        own = _content(item)
        chosen: list[Item] = []
        for index in self._order(item, group, len(pool)):
            example, content = pool[index]
            if content != own:
                chosen.append(example)
            if len(chosen) == self._few_shot.k:
                return chosen
        where = f" whose {self._few_shot.match!r} is {group}" if self._few_shot.match else ""
        raise UserError(
            f"benchmark {self._benchmark!r}, item {item.item_id!r}: few_shot.k is {self._few_shot.k}, and there are "
            f"{len(chosen)} examples{where}; lower k or add examples"
        )

    def _order(self, item: Item, group: str, n: int) -> Sequence[int]:
        if n == 0 or self._few_shot is None or self._few_shot.select == "first":
            return range(n)
        key = digest_bytes(json.dumps([self._few_shot.seed, item.item_id]).encode())[:16]
        mixed = _mix(self._ranks[group] ^ np.uint64(int(key, 16)))
        order: list[int] = np.argsort(mixed, kind="stable").tolist()
        return order

    def _group(self, item: Item) -> str:
        match = self._few_shot.match if self._few_shot else None
        return _EVERY if match is None else json.dumps(item.fields.get(match), sort_keys=True)


def _content(item: Item) -> str:
    fields: Any = dict(item.fields)
    return digest_bytes(json.dumps(fields, sort_keys=True).encode())


def _mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection of 64-bit words that avalanches fully."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
