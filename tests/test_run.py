"""run_shard: claims, resumption, one environment, and rows that do not depend on how the work was cut."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.engine import memory
from eval_tasks.engine.room import Room
from eval_tasks.errors import CheckpointError, CheckpointGoneError, DataError, EvalError, InfraError, UserError
from eval_tasks.grade import grade
from eval_tasks.log_lines import formatter
from eval_tasks.records import EngineTuning, Environment, Item, Plan
from eval_tasks.run import InterruptedShardError, OtherEnvironmentError, run_shard
from eval_tasks.run import shard as run_module
from eval_tasks.settings import Limits, Settings
from eval_tasks.store import Store, open_store
from tests.planned import N_CHOICE, N_GENERATED, N_TEXT, planned, register, uri_of, write_checkpoint

N_ITEMS = N_CHOICE + N_TEXT + N_GENERATED


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint") / "step-1")


@pytest.fixture
def made(store: Store, checkpoint: Path, tmp_path: Path) -> Plan:
    register(store, tmp_path / "benchmarks")
    return planned(store, checkpoint)


def run_all(store: Store, made: Plan, tmp_path: Path, owner: str = "pod") -> int:
    uri = uri_of(store, made)
    reports = [
        run_shard(store, plan_uri=uri, shard=s.shard, owner=owner, cache_dir=tmp_path / "cache") for s in made.shards
    ]
    return sum(report.n_computed for report in reports)


def rows_digest(store: Store, made: Plan) -> str:
    store.responses.close(made.run_id, store.queue.results(made.run_id))
    return store.responses.run_rows_digest(made.run_id)


def test_all_shards_compute_every_item_once(store: Store, made: Plan, tmp_path: Path) -> None:
    assert len(made.shards) > 2
    assert run_all(store, made, tmp_path) == N_ITEMS
    assert store.queue.counts(made.run_id)["done"] == N_ITEMS
    assert {row.status for row in store.catalog.shards(made.run_id)} == {"done"}
    assert run_all(store, made, tmp_path) == 0


def test_a_shard_reads_each_table_once_however_many_batches_it_has(
    store: Store, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(store, tmp_path / "benchmarks")
    made = planned(store, checkpoint, shard_cost_tokens=10**9)
    assert made.shards[0].n_batches > len({b.benchmark_id for b in store.blobs.get_batches(made.batches_blob, 0)})
    read: list[str] = []
    get_items = store.blobs.get_items

    def counted(digest: str, item_ids: Collection[str] | None = None) -> list[Item]:
        read.append(digest)
        return get_items(digest, item_ids)

    monkeypatch.setattr(store.blobs, "get_items", counted)
    run_shard(store, plan_uri=uri_of(store, made), shard=0, owner="pod", cache_dir=tmp_path / "cache")
    assert sorted(read) == sorted(set(read))


def test_a_catalog_out_of_reach_for_a_while_ends_no_lease(
    store: Store, made: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats: list[int] = []
    renewed = threading.Event()
    renew = store.queue.renew

    def flaky(*arguments: Any) -> bool:
        beats.append(1)
        if len(beats) == 1:
            raise InfraError("database is locked")
        renewed.set()
        return renew(*arguments)

    monkeypatch.setattr(store.queue, "renew", flaky)
    monkeypatch.setattr(
        run_module.Worker, "compute", lambda *_: pytest.fail("no beat came") if not renewed.wait(20) else []
    )
    with pytest.raises(DataError, match="has no rows"):
        run_shard(
            store,
            plan_uri=uri_of(store, made),
            shard=0,
            owner="pod",
            cache_dir=tmp_path / "cache",
            limits=Limits(lease_seconds=0.3),
        )


def test_the_error_of_the_work_is_told_when_its_claim_cannot_be_given_back(
    store: Store, made: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out_of_reach(*_: object) -> bool:
        raise InfraError("database is locked")

    monkeypatch.setattr(store.queue, "release", out_of_reach)
    monkeypatch.setattr(run_module.Worker, "compute", lambda *_: [])
    with pytest.raises(DataError, match="has no rows"):
        run_shard(store, plan_uri=uri_of(store, made), shard=0, owner="pod", cache_dir=tmp_path / "cache")


def test_rows_are_the_same_however_the_work_is_cut(store: Store, made: Plan, checkpoint: Path, tmp_path: Path) -> None:
    run_all(store, made, tmp_path)
    other = planned(store, checkpoint, shard_cost_tokens=10**9, repeat=1)
    assert len(other.shards) < len(made.shards)
    run_all(store, other, tmp_path)
    assert rows_digest(store, made) == rows_digest(store, other)


@pytest.mark.usefixtures("made")
def test_a_stopped_shard_keeps_its_batches_and_goes_on_to_the_same_rows(
    store: Store, checkpoint: Path, tmp_path: Path
) -> None:
    undisturbed = planned(store, checkpoint, repeat=1)
    run_all(store, undisturbed, tmp_path)
    made = planned(store, checkpoint, shard_cost_tokens=10**9, repeat=2)
    stop = threading.Event()
    with pytest.raises(InterruptedShardError, match="finished ones are kept"):
        run_shard(
            store,
            plan_uri=uri_of(store, made),
            shard=0,
            owner="first",
            cache_dir=tmp_path / "cache",
            stop=stop,
            progress=lambda done, _total: stop.set() if done else None,
        )
    kept = len(store.queue.results(made.run_id))
    assert kept >= 1
    assert run_all(store, made, tmp_path, owner="second") < N_ITEMS
    assert rows_digest(store, made) == rows_digest(store, undisturbed)


def test_a_pod_that_is_stopped_while_it_loads_leaves_no_claim(
    store: Store, made: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = threading.Event()
    load = run_module.Worker.load

    def stopped(worker: Any) -> Any:
        stop.set()
        return load(worker)

    monkeypatch.setattr(run_module.Worker, "load", stopped)
    claims: list[int] = []
    monkeypatch.setattr(store.queue, "try_claim", lambda *_: claims.append(1))
    uri, n_items = uri_of(store, made), made.shards[0].n_items
    with pytest.raises(InterruptedShardError, match=f"{n_items} of {n_items} items to go"):
        run_shard(store, plan_uri=uri, shard=0, owner="pod", cache_dir=tmp_path / "cache", stop=stop)
    assert not claims


def test_the_catalog_and_the_log_follow_a_shard(
    store: Store, checkpoint: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    register(store, tmp_path / "benchmarks")
    made = planned(store, checkpoint, shard_cost_tokens=10**9)
    stop = threading.Event()
    seen: list[tuple[str, int]] = []

    def watch(done: int, total: int) -> None:
        (row,) = (r for r in store.catalog.shards(made.run_id) if r.shard == 0)
        seen.append((row.status, row.n_done))
        if done == 64:
            stop.set()

    arguments: dict[str, Any] = {"plan_uri": uri_of(store, made), "shard": 0, "cache_dir": tmp_path / "cache"}
    caplog.set_level("INFO", logger="eval_tasks")
    with pytest.raises(InterruptedShardError):
        run_shard(store, owner="first", stop=stop, progress=watch, **arguments)
    row = store.catalog.shards(made.run_id)[0]
    assert (row.status, row.n_done) == ("failed", 64)  # what is done stays done
    assert seen[0] == ("running", 0) and ("running", 32) in seen
    lines = [m for m in caplog.messages if "items/s" in m]
    assert len(lines) == 1  # two batches within some seconds
    assert lines[0].startswith(f"shard 0: 32 of {made.shards[0].n_items} items, ")
    assert any("was loaded in" in m for m in caplog.messages)
    report = run_shard(store, owner="second", **arguments)
    assert report.n_computed == made.shards[0].n_items - 64
    row = store.catalog.shards(made.run_id)[0]
    assert (row.status, row.n_done, row.tuning) == ("done", made.shards[0].n_items, EngineTuning())


def test_a_shard_that_does_not_fit_fails_by_name_with_nothing_computed(
    store: Store, made: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "room_of", lambda _device: Room(n_bytes=1 << 20, source="a small pod"))
    with pytest.raises(CheckpointError, match=r"needs .* 1 MiB are free \(a small pod\)") as caught:
        run_shard(store, plan_uri=uri_of(store, made), shard=0, owner="a", cache_dir=tmp_path / "cache")
    assert caught.value.reason == "does_not_fit"
    row = store.catalog.shards(made.run_id)[0]
    assert row.status == "failed" and row.reason.startswith("CheckpointError: ")
    assert store.queue.results(made.run_id) == {}


def test_tuning_that_was_lowered_is_recorded_and_moves_no_row(
    store: Store, made: Plan, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_all(store, made, tmp_path)
    other = planned(store, checkpoint, repeat=1)
    # Too little for the prefix cache that was asked for, enough for everything else.
    monkeypatch.setattr(memory, "room_of", lambda _device: Room(n_bytes=300 << 20, source="a small pod"))
    run_all(store, other, tmp_path)
    tunings = {row.tuning for row in store.catalog.shards(other.run_id)}
    assert all(tuning is not None and tuning.prefix_cache_mb < EngineTuning().prefix_cache_mb for tuning in tunings)
    assert rows_digest(store, made) == rows_digest(store, other)


def test_two_pods_on_one_shard_give_one_result(store: Store, settings: Settings, made: Plan, tmp_path: Path) -> None:
    uri = uri_of(store, made)
    computed: list[int] = []
    errors: list[BaseException] = []

    def pod(owner: str) -> None:
        try:
            with open_store(settings) as own:
                report = run_shard(own, plan_uri=uri, shard=0, owner=owner, cache_dir=tmp_path / "cache")
                computed.append(report.n_computed)
        except BaseException as error:
            errors.append(error)

    pods = [threading.Thread(target=pod, args=(f"pod-{n}",)) for n in range(2)]
    for thread in pods:
        thread.start()
    for thread in pods:
        thread.join()
    assert not errors
    assert sum(computed) == made.shards[0].n_items


def test_a_claim_left_by_a_dead_pod_is_taken_when_its_lease_ends(store: Store, made: Plan, tmp_path: Path) -> None:
    from datetime import UTC, datetime

    batch = store.blobs.get_batches(made.batches_blob, shard=0)[0]
    assert store.queue.try_claim(made.run_id, batch.batch, "dead", 0.3, datetime.now(UTC))
    report = run_shard(
        store,
        plan_uri=uri_of(store, made),
        shard=0,
        owner="alive",
        cache_dir=tmp_path / "cache",
        limits=Limits(lease_seconds=30),
    )
    assert report.n_computed == made.shards[0].n_items


def test_a_claim_that_never_ends_is_an_infrastructure_error(store: Store, made: Plan, tmp_path: Path) -> None:
    from datetime import UTC, datetime

    for batch in store.blobs.get_batches(made.batches_blob, shard=0):
        assert store.queue.try_claim(made.run_id, batch.batch, "elsewhere", 3600, datetime.now(UTC))
    with pytest.raises(InfraError, match="claimed elsewhere"):
        run_shard(
            store,
            plan_uri=uri_of(store, made),
            shard=0,
            owner="waiting",
            cache_dir=tmp_path / "cache",
            limits=Limits(lease_seconds=0.2),
        )


def test_lines_of_a_shard_name_it(store: Store, made: Plan, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.handler.setFormatter(formatter("json"))
    with caplog.at_level("INFO", logger="eval_tasks.run"):
        run_shard(store, plan_uri=uri_of(store, made), shard=1, owner="a", cache_dir=tmp_path / "cache")
    lines = [json.loads(line) for line in caplog.text.splitlines()]
    places = {(line.get("run_id"), line.get("shard"), line.get("checkpoint_id")) for line in lines}
    assert places == {(made.run_id, 1, made.request.checkpoint_id)}


def test_a_second_environment_in_one_run_is_refused(
    store: Store, made: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = uri_of(store, made)
    run_shard(store, plan_uri=uri, shard=0, owner="a", cache_dir=tmp_path / "cache")
    monkeypatch.setattr(run_module, "describe_environment", lambda _config: Environment(components={"driver": "other"}))
    with pytest.raises(OtherEnvironmentError, match=r"its machines are not alike \(.*driver: absent -> 'other'"):
        run_shard(store, plan_uri=uri, shard=1, owner="b", cache_dir=tmp_path / "cache", node="n2")
    run = store.catalog.run(made.run_id)
    failed = store.catalog.shards(made.run_id)[1]
    assert (failed.status, failed.node) == ("failed", "n2")
    assert failed.env_fingerprint not in (None, run.env_fingerprint) and "driver: absent" in failed.reason
    assert store.catalog.fingerprints_of("local") == [failed.env_fingerprint, run.env_fingerprint]
    assert run.config_digest is not None
    assert run.status == "running"


def test_a_pod_of_another_release_files_no_rows_under_the_planners_name(
    store: Store, made: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "harness_version", lambda: "9.9.9+other")
    with pytest.raises(UserError, match=r"planned by checkpoint-eval .* this pod runs 9\.9\.9\+other; give the pods"):
        run_shard(store, plan_uri=uri_of(store, made), shard=0, owner="a", cache_dir=tmp_path / "cache")
    assert store.queue.results(made.run_id) == {}
    assert store.catalog.run(made.run_id).env_fingerprint is None


def test_an_unknown_shard_names_those_there_are(store: Store, made: Plan, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"has no shard 99; its shards are 0\.\.{len(made.shards) - 1}"):
        run_shard(store, plan_uri=uri_of(store, made), shard=99, owner="a", cache_dir=tmp_path / "cache")


def test_a_checkpoint_that_vanishes_ends_its_run_as_gone_until_it_is_found_elsewhere(
    store: Store, tmp_path: Path
) -> None:
    register(store, tmp_path / "benchmarks")
    folder = write_checkpoint(tmp_path / "step-7")
    shutil.copytree(folder, tmp_path / "copy-7")
    made = planned(store, folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointGoneError):
        run_shard(store, plan_uri=uri_of(store, made), shard=0, owner="a", cache_dir=tmp_path / "cache")
    assert store.queue.results(made.run_id) == {}
    shard = store.catalog.shards(made.run_id)[0]
    assert shard.status == "failed" and shard.reason.startswith("CheckpointGoneError: ")
    with pytest.raises(CheckpointGoneError, match=r"ended before all its rows were there: .*model\.safetensors"):
        grade(store, run_id=made.run_id)
    assert store.catalog.run(made.run_id).status == "gone"
    run_all(store, planned(store, tmp_path / "copy-7"), tmp_path)
    grade(store, run_id=made.run_id)
    assert store.catalog.run(made.run_id).status == "closed"


def test_weights_overwritten_after_planning_are_noticed(store: Store, tmp_path: Path) -> None:
    register(store, tmp_path / "benchmarks")
    folder = write_checkpoint(tmp_path / "step-7")
    made = planned(store, folder)
    data = bytearray((folder / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (folder / "model.safetensors").write_bytes(bytes(data))
    with pytest.raises(EvalError, match=r"model\.safetensors"):
        run_shard(store, plan_uri=uri_of(store, made), shard=0, owner="a", cache_dir=tmp_path / "cache")
    assert store.queue.results(made.run_id) == {}
