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


def chosen(plan: Plan, batches: Sequence[PlannedBatch]) -> list[PlannedBatch]:
    """The items of these batches, which are one shard's, that are computed again, in batches of their own.

    None is fuller than a planned one, by which memory was reckoned: scored items stay apart as their batches were.
    Generated items of one benchmark stand together, up to 32, since a few rows take as long to write as many; each
    such batch has the number of the first one that they are of.
    """
    drawn = {
        (batch.benchmark_id, item_id): int(digest_parts([plan.run_id, batch.benchmark_id, item_id])[:16], 16)
        for batch in batches
        for item_id in batch.item_ids
    }
    wanted = {key for key, draw in drawn.items() if draw % ONE_IN == 0} or {min(drawn, key=lambda key: drawn[key])}
    parts = [
        replace(batch, item_ids=tuple(i for i in batch.item_ids if (batch.benchmark_id, i) in wanted))
        for batch in sorted(batches, key=lambda batch: batch.batch)
    ]
    parts = [part for part in parts if part.item_ids]
    groups = {shard.shard: shard.group for shard in plan.shards}
    return _together(parts) if all(groups[part.shard] == "generation" for part in parts) else parts


def _together(parts: Sequence[PlannedBatch]) -> list[PlannedBatch]:
    found = []
    for benchmark_id in sorted({part.benchmark_id for part in parts}):
        alike = [part for part in parts if part.benchmark_id == benchmark_id]
        ids = sorted(item_id for part in alike for item_id in part.item_ids)
        cut = [tuple(ids[start : start + _BATCH_ITEMS]) for start in range(0, len(ids), _BATCH_ITEMS)]
        found += [replace(alike[0], item_ids=part) for part in cut]
    return found
