"""Items of a closed run that a second pod computed too -> the same bits, or a block that names both nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eval_tasks.bitwise import SHOWN_ITEMS, first_difference
from eval_tasks.blocking import open_block
from eval_tasks.computed_again import checking_shard
from eval_tasks.determinism.explaining import mark_suspects
from eval_tasks.records import ComputedTwice, EndpointConfig, Response, RowDifference, Run

if TYPE_CHECKING:
    from eval_tasks.store import Store


def check_again(store: Store, run_id: str, now: str) -> ComputedTwice | None:
    """Hold second rows against a closed run's own, bit for bit; what was found is kept, and is found once.

    A difference opens a block of kind ``computed_twice`` with an alert, and puts the runs since the last good night in
    doubt, this one among them. None for a run of an endpoint, or one whose rows nobody planned. Second rows that are
    not there (a pod ended before it had computed them) are not counted.
    """
    run = store.catalog.run(run_id)
    if run.plan_blob is None or isinstance(run.request.engine, EndpointConfig):
        return None
    if (known := store.catalog.computed_twice(run.run_id)) is not None:
        store.again.remove(run.run_id)
        return known
    plan = store.plan(run.plan_blob)
    nodes = {row.shard: row.node for row in store.catalog.shards(run.run_id)}
    n_items = n_elsewhere = 0
    differing: list[RowDifference] = []
    where: set[str] = set()
    for shard in plan.shards:
        rows = store.again.rows(run.run_id, shard.shard)
        second = checking_shard(plan, shard.shard)
        n_items += len(rows)
        n_elsewhere += len(rows) if second != shard.shard else 0
        found = list(_differences(store, run, rows))
        differing += found
        where |= {nodes.get(at, "") for at in (shard.shard, second)} if found else set()
    twice = ComputedTwice(
        run_id=run.run_id,
        n_items=n_items,
        n_differing=len(differing),
        n_elsewhere=n_elsewhere,
        nodes=tuple(sorted(where - {""})),
        first=tuple(differing[:SHOWN_ITEMS]),
    )
    if differing:
        reason = f"{len(differing)} of {n_items} items that run {run.run_id} computed twice came out differently"
        block = open_block(store, run, "computed_twice", reason, now=now, first=twice.first, nodes=twice.nodes)
        mark_suspects(store, block, now)
    # After the block: what dies in between looks again, and finds the block open.
    store.catalog.save_computed_twice(twice)
    store.again.remove(run.run_id)
    return twice


def _differences(store: Store, run: Run, rows: list[Response]) -> Iterator[RowDifference]:
    for benchmark_id in sorted({row.benchmark_id for row in rows}):
        benchmark = store.catalog.benchmark_by_id(benchmark_id)
        again = {row.item_id: row for row in rows if row.benchmark_id == benchmark_id}
        for own in store.responses.rows(run.run_id, benchmark_id, again):
            difference = first_difference(benchmark.name, own, again[own.item_id])
            if difference is not None:
                yield difference
