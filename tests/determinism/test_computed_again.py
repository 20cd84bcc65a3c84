"""Items that two pods computed: the same bits pass, other ones open a block that names both nodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.computed_again import checked_shard, checking_shard
from eval_tasks.determinism import check_again
from eval_tasks.engine.mock import MockEngine
from eval_tasks.gate import gate
from eval_tasks.grade import grade
from eval_tasks.plan import plan
from eval_tasks.publish import suspicions
from eval_tasks.records import Plan, Response
from eval_tasks.resolve import resolve
from eval_tasks.run import InterruptedShardError, run_shard
from eval_tasks.settings import EnvironmentSpec, Limits, Settings
from eval_tasks.store import Store
from tests.planned import NOW, register, uri_of, write_checkpoint

LATER = "2026-01-02T00:00:00+00:00"


@pytest.fixture
def made(store: Store, tmp_path: Path) -> Plan:
    """A plan of several shards of each kind, on the mock engine."""
    register(store, tmp_path / "benchmarks")
    folder = write_checkpoint(tmp_path / "step-1")
    spec = EnvironmentSpec(name="local", engine="mock")
    return plan(
        store,
        checkpoint=resolve(store, checkpoint_uri=str(folder), training_run="tiny", step=1),
        checkpoint_dir=folder,
        suite="colours-all",
        environment=spec,
        limits=Limits(shard_cost_tokens=500),
        engine=spec.engine_config(),
        now=NOW,
    )


def compute(store: Store, made: Plan, tmp_path: Path, *shards: int, stop: Any = None) -> None:
    for shard in shards or [shard.shard for shard in made.shards]:
        run_shard(
            store,
            plan_uri=uri_of(store, made),
            shard=shard,
            owner=f"pod-{shard}",
            cache_dir=tmp_path / "cache",
            node=f"node-{shard}",
            stop=stop,
        )


def test_an_undisturbed_run_is_the_same_twice_in_other_pods(store: Store, made: Plan, tmp_path: Path) -> None:
    compute(store, made, tmp_path)
    grade(store, run_id=made.run_id)
    twice = check_again(store, made.run_id, LATER)
    assert twice is not None
    assert twice.n_items >= len(made.shards) and twice.n_differing == 0
    assert twice.n_elsewhere == twice.n_items, "every kind of work has several shards here"
    assert store.catalog.open_blocks() == [] and store.catalog.alerts() == []
    assert check_again(store, made.run_id, LATER) == twice == store.catalog.computed_twice(made.run_id)
    assert store.upkeep.orphans() == []


def test_one_bit_opens_a_block_that_names_both_nodes_and_doubts_the_run(
    store: Store, made: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = next(shard.shard for shard in made.shards if shard.group == "generation")
    second = checking_shard(made, victim)
    assert second != victim
    compute(store, made, tmp_path, *(shard.shard for shard in made.shards if shard.shard != second))
    respond = MockEngine.respond

    def faulty(engine: MockEngine, requests: Any) -> list[Response]:
        own = {i for b in store.blobs.get_batches(made.batches_blob, shard=second) for i in b.item_ids}
        return [
            row if row.item_id in own else replace(row, output=f"{row.output}!") for row in respond(engine, requests)
        ]

    monkeypatch.setattr(MockEngine, "respond", faulty)
    compute(store, made, tmp_path, second)
    grade(store, run_id=made.run_id)
    twice = check_again(store, made.run_id, LATER)
    assert twice is not None and twice.n_differing >= 1
    assert twice.nodes == tuple(sorted({f"node-{victim}", f"node-{second}"}))
    (block,) = store.catalog.open_blocks()
    assert (block.kind, block.run_id, block.nodes) == ("computed_twice", made.run_id, twice.nodes)
    assert block.first[0].field == "output" and block.first[0].b.rstrip("'\"").endswith("!")
    (alert,) = store.catalog.alerts()
    assert all(node in alert.body for node in twice.nodes)
    assert not gate(store, environment="local").open
    assert suspicions(store, store.catalog.run(made.run_id))
    check_again(store, made.run_id, LATER)
    assert len(store.catalog.blocks()) == len(store.catalog.alerts()) == 1


def test_a_retried_pod_doubles_nothing_and_loads_nothing(
    store: Store, made: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compute(store, made, tmp_path)
    monkeypatch.setattr(MockEngine, "respond", lambda *_: pytest.fail("nothing was left to compute"))
    compute(store, made, tmp_path)
    first = made.shards[0].shard
    assert store.again.holds(made.run_id, checked_shard(made, first))


def test_a_pod_that_is_stopped_before_its_second_look_makes_up_for_it(
    store: Store, made: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from threading import Event

    stop = Event()
    shard = made.shards[0]
    respond, seen = MockEngine.respond, []

    def last(engine: MockEngine, requests: Any) -> list[Response]:
        seen.extend(requests)
        if len(seen) >= shard.n_items:
            stop.set()
        return respond(engine, requests)

    monkeypatch.setattr(MockEngine, "respond", last)
    with pytest.raises(InterruptedShardError):
        compute(store, made, tmp_path, shard.shard, stop=stop)
    assert not store.again.holds(made.run_id, checked_shard(made, shard.shard))
    compute(store, made, tmp_path, shard.shard)
    assert store.again.holds(made.run_id, checked_shard(made, shard.shard))


def test_second_rows_that_are_not_there_or_damaged_are_not_counted(
    store: Store, settings: Settings, made: Plan, tmp_path: Path
) -> None:
    compute(store, made, tmp_path)
    lost, torn = (shard.shard for shard in made.shards[:2])
    folder = Path(settings.store_uri) / "again" / made.run_id
    (folder / f"{lost:07d}.parquet").unlink()
    (folder / f"{torn:07d}.parquet").write_bytes(b"PAR1 torn")
    whole = sum(len(store.again.rows(made.run_id, shard.shard)) for shard in made.shards)
    grade(store, run_id=made.run_id)
    twice = check_again(store, made.run_id, LATER)
    assert twice is not None and (twice.n_items, twice.n_differing) == (whole, 0)
    assert not folder.exists() or not list(folder.iterdir())
