"""Items in, the batches that a plan computes them in: neighbours of one size, or, on purpose, anything else.

A perturbed plan gives every item other companions, another place in its batch and batches of other sizes. With an
engine that keeps its promise not a bit of any row may notice.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from eval_tasks.digests import digest_parts
from eval_tasks.records import Item


def batches_of(items: Sequence[Item], batch_size: int, perturbation: str = "") -> list[list[Item]]:
    """`items` cut in their order into batches of `batch_size`, the last one short.

    With a `perturbation`, any text, they are shuffled by it and cut into batches of 1 to `batch_size` items.
    """
    if not perturbation:
        return [list(items[start : start + batch_size]) for start in range(0, len(items), batch_size)]
    shuffled = sorted(items, key=lambda item: digest_parts([perturbation, item.item_id]))
    sizes = Random(perturbation)  # noqa: S311 - sizes of batches, no secret
    batches: list[list[Item]] = []
    while shuffled:
        size = sizes.randint(1, batch_size)
        batches.append(shuffled[:size])
        shuffled = shuffled[size:]
    return batches
