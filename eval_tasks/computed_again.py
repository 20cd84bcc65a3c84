"""A plan -> which of its items are computed a second time, and by which shard. A function of the plan alone.

One item in a hundred, by a digest of run and item, and at least one of each shard: whoever asks finds the same items,
so that nothing more is planned, recorded or lost. They are computed by the next shard of the same kind of work, which
is another pod where there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eval_tasks.digests import digest_parts
from eval_tasks.records import Plan, PlannedBatch

ONE_IN = 100
_BATCH_ITEMS = 32


def checked_shard(plan: Plan, shard: int) -> int:
    """The shard whose chosen items `shard` computes again: the one before it, itself where it is alone."""
    group = next(s.group for s in plan.shards if s.shard == shard)
    alike = sorted(s.shard for s in plan.shards if s.group == group)
    return alike[alike.index(shard) - 1]


def checking_shard(plan: Plan, shard: int) -> int:
    """The shard that computes the chosen items of `shard` again."""
    return next(s.shard for s in plan.shards if checked_shard(plan, s.shard) == shard)


def chosen(run_id: str, batches: Sequence[PlannedBatch]) -> list[PlannedBatch]:
    """The items of these batches, which are one shard's, that are computed again, in batches of their own.

    Each batch has the items of one benchmark, in item order, and the number of the first batch that they are of.
    """
    drawn = {
        (batch.benchmark_id, item_id): int(digest_parts([run_id, batch.benchmark_id, item_id])[:16], 16)
        for batch in batches
        for item_id in batch.item_ids
    }
    wanted = {key for key, draw in drawn.items() if draw % ONE_IN == 0} or {min(drawn, key=lambda key: drawn[key])}
    first = {batch.benchmark_id: batch for batch in reversed(batches)}
    found = []
    for benchmark_id in sorted({benchmark_id for benchmark_id, _ in wanted}):
        ids = sorted(item_id for of, item_id in wanted if of == benchmark_id)
        parts = [tuple(ids[start : start + _BATCH_ITEMS]) for start in range(0, len(ids), _BATCH_ITEMS)]
        found += [replace(first[benchmark_id], item_ids=part) for part in parts]
    return found
