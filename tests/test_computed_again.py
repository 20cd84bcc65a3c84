"""Which items are computed a second time, and where: one in a hundred, the same for everybody who asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from eval_tasks.computed_again import ONE_IN, checked_shard, checking_shard, chosen
from eval_tasks.records import Plan, PlannedBatch, PlannedShard
from eval_tasks.records.plan import Group
from eval_tasks.store import Store
from tests.planned import planned, register, write_checkpoint


def batches(n_items: int, benchmark_id: str = "b" * 32) -> list[PlannedBatch]:
    ids = [f"i{n:05d}" for n in range(n_items)]
    return [
        PlannedBatch(batch=k, shard=3, benchmark_id=benchmark_id, item_ids=tuple(ids[at : at + 32]), cost_tokens=9)
        for k, at in enumerate(range(0, n_items, 32))
    ]


@pytest.fixture
def of(store: Store, tmp_path: Path) -> Callable[..., Plan]:
    """A plan under another run id and with one shard, 3, of a group."""
    register(store, tmp_path / "benchmarks")
    made = planned(store, write_checkpoint(tmp_path / "step-1"))

    def build(run_id: str, group: Group = "logprob") -> Plan:
        shard = PlannedShard(shard=3, group=group, n_batches=1, n_items=1, cost_tokens=1)
        return replace(made, run_id=run_id, shards=(shard,))

    return build


def ids_of(found: list[PlannedBatch]) -> list[str]:
    return sorted(item_id for batch in found for item_id in batch.item_ids)


def test_about_one_item_in_a_hundred_is_chosen_by_run_and_item_alone(of: Callable[..., Plan]) -> None:
    found = ids_of(chosen(of("run-1"), batches(20_000)))
    assert 0.8 < ONE_IN * len(found) / 20_000 < 1.2
    assert (
        found
        == ids_of(chosen(of("run-1"), batches(20_000)[::-1]))
        == ids_of(chosen(of("run-1", "generation"), batches(20_000)))
    )
    other = ids_of(chosen(of("run-2"), batches(20_000)))
    assert len(set(found) & set(other)) < len(found) / 4


def test_every_shard_has_at_least_one(of: Callable[..., Plan]) -> None:
    for n_items in (1, 5, 40):
        assert len(ids_of(chosen(of("run"), batches(n_items)))) >= 1


def test_scored_items_stay_apart_as_their_batches_were(of: Callable[..., Plan]) -> None:
    whole = {batch.batch: set(batch.item_ids) for batch in batches(9_000)}
    found = chosen(of("run"), batches(9_000))
    assert len(found) > 20
    assert all(set(batch.item_ids) <= whole[batch.batch] for batch in found)


def test_generated_items_stand_together_by_benchmark(of: Callable[..., Plan]) -> None:
    found = chosen(of("run", "generation"), [*batches(9_000, "a" * 32), *batches(9_000, "c" * 32)])
    assert {batch.benchmark_id for batch in found} == {"a" * 32, "c" * 32}
    sizes = [len(batch.item_ids) for batch in found]
    assert max(sizes) == 32 and sum(size < 32 for size in sizes) <= 2


def test_another_shard_of_the_same_kind_of_work_looks_where_there_is_one(store: Store, tmp_path: Path) -> None:
    register(store, tmp_path / "benchmarks")
    made = planned(store, write_checkpoint(tmp_path / "step-1"), shard_cost_tokens=3_000)
    groups = {shard.shard: shard.group for shard in made.shards}
    assert sorted(checked_shard(made, shard) for shard in groups) == sorted(groups), "each is looked at once"
    for shard, group in groups.items():
        checked = checked_shard(made, shard)
        assert groups[checked] == group
        assert checking_shard(made, checked) == shard
        alone = list(groups.values()).count(group) == 1
        assert (checked == shard) == alone
