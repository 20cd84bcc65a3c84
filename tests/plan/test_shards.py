from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_tasks.errors import UserError
from eval_tasks.plan.shards import Work, cut_shards
from eval_tasks.records.plan import Group
from eval_tasks.settings import Limits


def _work(*costs: int, group: Group = "logprob") -> list[Work]:
    return [
        Work(benchmark_id="b", group=group, item_ids=(f"{group}{n}",), cost_tokens=cost) for n, cost in enumerate(costs)
    ]


def test_groups_never_share_a_shard_and_logprob_comes_first() -> None:
    work = [*_work(5, 5, group="generation"), *_work(5, 5, 5)]
    batches, shards = cut_shards(work, Limits(shard_cost_tokens=10))
    assert [(s.shard, s.group, s.n_batches, s.cost_tokens) for s in shards] == [
        (0, "logprob", 1, 5),
        (1, "logprob", 2, 10),
        (2, "generation", 2, 10),
    ]
    assert [(b.batch, b.item_ids[0]) for b in batches] == [
        (0, "generation0"),
        (1, "generation1"),
        (2, "logprob0"),
        (3, "logprob1"),
        (4, "logprob2"),
    ]


def test_the_number_of_shards_is_capped() -> None:
    work = [*_work(*[10] * 50), *_work(*[10] * 20, group="generation")]
    _, shards = cut_shards(work, Limits(shard_cost_tokens=1, max_shards=30))
    assert len(shards) == 30
    assert {s.group for s in shards} == {"logprob", "generation"}
    with pytest.raises(UserError, match="max_shards is 1"):
        cut_shards(work, Limits(max_shards=1))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(1, 5000), max_size=60),
    st.lists(st.integers(1, 5000), max_size=60),
    st.integers(1, 20_000),
    st.integers(2, 40),
)
def test_every_batch_stands_once_and_costs_balance(
    logprob: list[int], generation: list[int], shard_cost: int, max_shards: int
) -> None:
    work = [*_work(*logprob), *_work(*generation, group="generation")]
    limits = Limits(shard_cost_tokens=shard_cost, max_shards=max_shards)
    batches, shards = cut_shards(work, limits)
    assert [b.batch for b in batches] == list(range(len(work)))
    assert [s.shard for s in shards] == list(range(len(shards)))
    assert len(shards) <= max_shards
    for shard in shards:
        mine = [b for b in batches if b.shard == shard.shard]
        assert shard.n_batches == len(mine) > 0
        assert shard.cost_tokens == sum(b.cost_tokens for b in mine)
        assert {work[b.batch].group for b in mine} == {shard.group}
        assert [b.batch for b in mine] == list(range(mine[0].batch, mine[0].batch + len(mine)))
    assert cut_shards(work, limits) == (batches, shards)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 5000), min_size=1, max_size=60), st.integers(1, 20))
def test_no_shard_is_above_its_share_by_more_than_a_batch(costs: list[int], n: int) -> None:
    _, shards = cut_shards(_work(*costs), Limits(shard_cost_tokens=-(-sum(costs) // n)))
    asked = min(len(costs), -(-sum(costs) // -(-sum(costs) // n)))
    assert max(s.cost_tokens for s in shards) <= sum(costs) / asked + max(costs)
