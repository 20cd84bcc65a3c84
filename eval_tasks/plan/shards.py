"""Batches of items with their costs -> numbered batches in shards. Knows no item's content and no store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eval_tasks.errors import UserError
from eval_tasks.records import PlannedBatch, PlannedShard
from eval_tasks.records.plan import Group
from eval_tasks.settings import Limits

_GROUPS: tuple[Group, ...] = ("logprob", "generation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A batch before it has a number and a shard. `cost_tokens`: tokens to be read plus tokens that may be written.

    The others are as in PlannedShard, of this batch alone.
    """

    benchmark_id: str
    group: Group
    item_ids: tuple[str, ...]
    cost_tokens: int
    longest_prompt_tokens: int = 0
    longest_output_tokens: int = 0
    n_sequences: int = 0


def cut_shards(work: Sequence[Work], limits: Limits) -> tuple[list[PlannedBatch], list[PlannedShard]]:
    """Numbered batches and their shards: log-probability shards first, each a run of neighbours, balanced by cost."""
    groups = [group for group in _GROUPS if any(w.group == group for w in work)]
    if len(groups) > limits.max_shards:
        raise UserError(
            f"limits.max_shards is {limits.max_shards}, and log-probability and generation work need a shard each; "
            "set it to 2 or more"
        )
    numbered = list(enumerate(work))
    sizes = _n_shards({g: [w.cost_tokens for w in work if w.group == g] for g in groups}, limits)
    batches: list[PlannedBatch] = []
    shards: list[PlannedShard] = []
    for group in groups:
        mine = [(number, w) for number, w in numbered if w.group == group]
        for part in _parts(mine, sizes[group]):
            shard = len(shards)
            cut = [
                PlannedBatch(
                    batch=number,
                    shard=shard,
                    benchmark_id=w.benchmark_id,
                    item_ids=w.item_ids,
                    cost_tokens=w.cost_tokens,
                )
                for number, w in part
            ]
            batches += cut
            shards.append(
                PlannedShard(
                    shard=shard,
                    group=group,
                    n_batches=len(cut),
                    n_items=sum(len(batch.item_ids) for batch in cut),
                    cost_tokens=sum(batch.cost_tokens for batch in cut),
                    longest_prompt_tokens=max(w.longest_prompt_tokens for _, w in part),
                    longest_output_tokens=max(w.longest_output_tokens for _, w in part),
                    most_sequences=max(w.n_sequences for _, w in part),
                )
            )
    return sorted(batches, key=lambda batch: batch.batch), shards


def _n_shards(costs: dict[Group, list[int]], limits: Limits) -> dict[Group, int]:
    """Shards per group: by cost, no more than batches, and in all no more than `max_shards`."""
    wanted = {group: min(len(c), -(-sum(c) // limits.shard_cost_tokens)) for group, c in costs.items()}
    while sum(wanted.values()) > limits.max_shards:
        wanted[max(wanted, key=lambda group: wanted[group])] -= 1
    return wanted


def _parts(work: Sequence[tuple[int, Work]], n: int) -> Iterator[list[tuple[int, Work]]]:
    """At most `n` runs of neighbours, none empty, none above the mean cost by more than one batch."""
    total = sum(w.cost_tokens for _, w in work)
    part: list[tuple[int, Work]] = []
    begun, spent = 0, 0
    for number, w in work:
        place = min(n - 1, (2 * spent + w.cost_tokens) * n // (2 * total))
        if part and place > begun:
            yield part
            part = []
        begun = place
        part.append((number, w))
        spent += w.cost_tokens
    yield part
