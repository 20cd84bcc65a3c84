"""Items and a number -> a fixed, stratified choice of them. A function of the items' ids and strata, and of a seed."""

from __future__ import annotations

from collections.abc import Sequence

from eval_tasks.digests import digest_parts
from eval_tasks.records import Item


def choose_items(items: Sequence[Item], n: int | None, seed: int) -> list[Item]:
    """`n` of the items, all when None, in item_id order: a fixed choice, in proportion to the strata.

    Within a stratum items rank by blake3(seed, item_id); the strata's shares are those of Webster's method (rank j of m
    stands at (j + 1/2) / m, the n lowest are taken). So a new item displaces at most one other.
    """
    if n is None or n >= len(items):
        return sorted(items, key=lambda item: item.item_id)
    strata: dict[str, list[tuple[str, Item]]] = {}
    for item in items:
        key = digest_parts(["choose", str(seed), item.item_id])
        strata.setdefault("" if item.stratum is None else f"={item.stratum}", []).append((key, item))
    placed = []
    for stratum, members in strata.items():
        tie = digest_parts(["stratum", str(seed), stratum])
        members.sort(key=lambda member: member[0])
        placed += [((2 * j + 1) / (2 * len(members)), tie, j, item) for j, (_, item) in enumerate(members)]
    placed.sort(key=lambda place: place[:3])
    return sorted((item for *_, item in placed[:n]), key=lambda item: item.item_id)
