"""Runs and shards."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from eval_tasks.digests import digest_parts
from eval_tasks.errors import DataError, UserError
from eval_tasks.records import EngineTuning, PlannedShard
from eval_tasks.store import ShardRow, Store
from tests.store.samples import run

SHARD = PlannedShard(shard=0, group="logprob", n_batches=2, n_items=40, cost_tokens=900)


def test_the_same_run_again_is_the_one_that_stands(store: Store) -> None:
    first = run(1, tuning=EngineTuning(tokens_per_forward=3), origin="mock")
    assert store.catalog.create_run(first) == first
    assert store.catalog.create_run(replace(first, created_at="2027-01-01T00:00:00+00:00")) == first
    assert store.catalog.run(first.run_id) == first


def test_a_run_is_found_by_the_beginning_of_its_id_when_only_one_begins_so(store: Store) -> None:
    first, second = run(run_id="abc1" + "0" * 28), run(run_id="abd2" + "0" * 28)
    store.catalog.create_run(first)
    store.catalog.create_run(second)
    assert store.catalog.run("abc") == first
    with pytest.raises(UserError, match=f"'ab' is the beginning of several runs: {first.run_id}, {second.run_id}"):
        store.catalog.run("ab")
    for name in ("b", "", "%", "ab_"):
        with pytest.raises(UserError, match="no run"):
            store.catalog.run(name)


def test_an_id_that_another_begins_with_is_that_id(store: Store) -> None:
    store.catalog.create_run(run(run_id="abc"))
    store.catalog.create_run(run(run_id="abcd"))
    assert store.catalog.run("abc").run_id == "abc"


def test_fields_of_a_run_are_replaced(store: Store) -> None:
    store.catalog.create_run(run(1))
    changed = store.catalog.update_run(run(1).run_id, status="running", plan_blob="p" * 64)
    assert changed == replace(run(1), status="running", plan_blob="p" * 64)
    assert store.catalog.run(run(1).run_id) == changed
    assert store.catalog.runs(status="planned") == []
    assert store.catalog.runs(status="running") == [changed]


def test_changes_that_do_not_fit_are_refused(store: Store) -> None:
    store.catalog.create_run(run(1))
    with pytest.raises(UserError, match=r"no field 'state'.*close: 'status'"):
        store.catalog.update_run(run(1).run_id, state="running")
    with pytest.raises(DataError, match="status"):
        store.catalog.update_run(run(1).run_id, status="finished")
    with pytest.raises(UserError, match="no run 'x'"):
        store.catalog.update_run("x", status="running")
    assert store.catalog.run(run(1).run_id) == run(1)


def test_changes_from_many_threads_all_stay(store: Store) -> None:
    store.catalog.create_run(run(1))
    fields = {"status": "running", "reason": "r", "plan_blob": "p", "closed_at": "later", "environment": "e"}
    threads = [
        threading.Thread(target=store.catalog.update_run, args=(run(1).run_id,), kwargs={name: value})
        for name, value in fields.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.catalog.run(run(1).run_id) == replace(run(1), **fields)


def test_runs_are_filtered_and_newest_first(store: Store) -> None:
    other = replace(run(2).request, suite="selection", checkpoint_id="d" * 64)
    runs = [
        run(1, created_at="2026-01-01T00:00:00+00:00"),
        run(2, created_at="2026-01-02T00:00:00+00:00", request=other, tier="selection"),
        run(3, created_at="2026-01-02T00:00:00+00:00", training_run="large"),
    ]
    for one in runs:
        store.catalog.create_run(one)
    assert store.catalog.runs() == runs[::-1]
    assert store.catalog.runs(limit=2) == [runs[2], runs[1]]
    assert store.catalog.runs(tier="selection") == store.catalog.runs(suite="selection") == [runs[1]]
    assert store.catalog.runs(checkpoint_id="d" * 64) == [runs[1]]
    assert store.catalog.runs(training_run="large", tier="health") == [runs[2]]
    assert store.catalog.runs(training_run="none") == []


def test_the_first_shard_decides_the_environment(store: Store) -> None:
    store.catalog.create_run(run(1))
    pinned = store.catalog.pin_environment(run(1).run_id, "f" * 32)
    assert pinned.config_digest == digest_parts([run(1).request.request_digest, "f" * 32])
    assert store.catalog.pin_environment(run(1).run_id, "f" * 32) == pinned
    with pytest.raises(DataError, match=f"{'f' * 32}.*{'0' * 32}"):
        store.catalog.pin_environment(run(1).run_id, "0" * 32)
    assert store.catalog.run(run(1).run_id) == pinned


def test_shards_keep_what_they_report(store: Store) -> None:
    store.catalog.create_run(run(1))
    store.catalog.save_shards(run(1).run_id, [SHARD, replace(SHARD, shard=10), replace(SHARD, shard=9)])
    done = store.catalog.record_shard(
        run(1).run_id, 9, status="done", env_fingerprint="f" * 32, node="n1", n_items=40, seconds=1.5, reason="resumed"
    )
    planned = ShardRow(
        run_id=run(1).run_id, shard=0, group="logprob", n_batches=2, n_items=40, cost_tokens=900, status="planned"
    )
    assert done == replace(
        planned,
        shard=9,
        status="done",
        env_fingerprint="f" * 32,
        node="n1",
        n_done=40,
        seconds=1.5,
        total_seconds=1.5,
        reason="resumed",
    )
    store.catalog.save_shards(run(1).run_id, [SHARD, replace(SHARD, shard=10), replace(SHARD, shard=9)])
    assert store.catalog.shards(run(1).run_id) == [planned, done, replace(planned, shard=10)]


def test_a_shard_that_was_not_planned_is_refused(store: Store) -> None:
    store.catalog.create_run(run(1))
    with pytest.raises(UserError, match="has no shard 4"):
        store.catalog.record_shard(run(1).run_id, 4, status="done")
    with pytest.raises(UserError, match="no run 'x'"):
        store.catalog.record_shard("x", 4, status="done")
    with pytest.raises(UserError, match="no run 'x'"):
        store.catalog.save_shards("x", [SHARD])
    assert store.catalog.shards(run(1).run_id) == []
