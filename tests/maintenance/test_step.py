"""What goes from a real store, what stays, and that nothing goes before its time or without being asked for."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from eval_tasks.errors import UserError
from eval_tasks.grade import grade
from eval_tasks.guard import guard
from eval_tasks.maintenance import MaintenanceReport, maintenance
from eval_tasks.policies import MaintenancePolicy
from eval_tasks.publish import publish
from eval_tasks.scoring.run_rows import score_run
from eval_tasks.settings import Settings
from eval_tasks.store import Store
from tests.planned import NOW

Answered = Callable[..., str]
TODAY = datetime.now(UTC)
POLICY = MaintenancePolicy()
THIN = MaintenancePolicy(thin_health_after_days=30)


def done(store: Store, policy: MaintenancePolicy = POLICY, *, days: float = 0, apply: bool = True) -> MaintenanceReport:
    return maintenance(store, policy, TODAY + timedelta(days=days), apply=apply)


def files(settings: Settings) -> set[str]:
    root = Path(settings.store_uri)
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def published(store: Store, answered: Answered) -> str:
    run_id = answered()
    guard(store, run_id=run_id, now=NOW, validator="built_in")
    publish(store, run_id=run_id, now=NOW)
    return run_id


def stray(settings: Settings, *names: str, days_old: float = 0) -> None:
    for name in names:
        path = Path(settings.store_uri) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"stray")
        at = (TODAY - timedelta(days=days_old)).timestamp()
        os.utime(path, (at, at))


def test_a_store_in_order_loses_nothing_however_old_it_is(store: Store, settings: Settings, published: str) -> None:
    before = files(settings)
    assert len(before) > 8
    report = done(store, days=5_000)
    assert (report.removed, report.waiting, report.compacted, report.thinned) == ((), (), {}, {})
    assert files(settings) == before
    publish(store, run_id=published, now=NOW)


def test_files_that_nothing_names_go_after_their_grace_time(store: Store, settings: Settings, published: str) -> None:
    before = files(settings)
    scores = next(name for name in before if name.startswith("scores/")).rpartition("/")[0]
    old = [
        f"responses/{published}/batches/0000001-{'a' * 64}.parquet",
        f"responses/{published}/.x.tmp",
        f"{scores}/torn.parquet",
        f"blobs/aa/{'b' * 62}",
        "blobs/aa/.cc.tmp",
    ]
    stray(settings, *old, days_old=8)
    stray(settings, f"blobs/aa/{'c' * 62}", days_old=6)
    kept = ["replies/r/x.json", "hub/x.json", "elsewhere/x"]
    stray(settings, *kept, days_old=1000)
    listed = done(store, apply=False)
    assert sorted(orphan.name for orphan in listed.removed) == sorted(old)
    assert [orphan.name for orphan in listed.waiting] == [f"blobs/aa/{'c' * 62}"]
    assert files(settings) >= {*old, *kept}, "listing removes nothing"
    assert done(store).removed == listed.removed
    assert files(settings) == before | set(kept) | {f"blobs/aa/{'c' * 62}"}
    done(store, days=2)
    assert files(settings) == before | set(kept)


def test_a_blob_that_any_other_folder_names_stays(store: Store, settings: Settings) -> None:
    digest = store.blobs.put(b"hits of a shard")
    place = Path(settings.store_uri) / f"blobs/{digest[:2]}/{digest[2:]}"
    os.utime(place, (0, 0))
    assert [orphan.name for orphan in done(store, apply=False).removed] == [f"blobs/{digest[:2]}/{digest[2:]}"]
    note = Path(settings.store_uri) / "scans/s/000000.json"
    note.parent.mkdir(parents=True)
    note.write_text(f'{{"hits": "{digest}"}}')
    assert done(store).removed == ()
    assert store.blobs.get(digest) == b"hits of a shard"


def test_an_open_runs_files_are_its_queues(store: Store, settings: Settings) -> None:
    open_run = [f"responses/{'d' * 32}/batches/0000001-{'a' * 64}.parquet"]
    stray(settings, *open_run, days_old=1000)
    assert done(store).removed == ()
    assert files(settings) >= set(open_run)


def test_a_blob_that_is_named_again_before_it_goes_stays(
    store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = store.blobs.put(b"items of long ago")
    name = f"blobs/{digest[:2]}/{digest[2:]}"
    stray_time = (TODAY - timedelta(days=100)).timestamp()
    os.utime(Path(settings.store_uri) / name, (stray_time, stray_time))
    looks = 0
    real = store.upkeep.orphans

    def named_between() -> object:
        nonlocal looks
        found = real()
        looks += 1
        if looks == 1:
            store.hub_files.put("o/n", "r", ["*"], [("x", b"items of long ago")])
        return found

    monkeypatch.setattr(store.upkeep, "orphans", named_between)
    done(store)
    assert store.blobs.get(digest) == b"items of long ago"


def test_queue_rows_that_a_closed_run_left_are_dropped(
    store: Store, answered: Answered, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store.queue, "compact", lambda run_id: 0)  # as a process that died after closing
    run_id = answered()
    monkeypatch.undo()
    assert done(store, apply=False).compacted == {run_id: 146}
    assert store.queue.uncompacted() == {run_id: 146}
    assert done(store).compacted == {run_id: 146}
    assert store.queue.uncompacted() == {}
    assert sum(store.queue.counts(run_id).values()) == 146


def as_health(store: Store, run_id: str) -> None:
    store.catalog.update_run(run_id, tier="health")


def test_outputs_of_old_health_runs_are_thinned_only_when_asked(
    store: Store, settings: Settings, published: str
) -> None:
    as_health(store, published)
    assert done(store, days=5_000).thinned == {}
    assert done(store, THIN, days=20).thinned == {}
    rows, digest = _rows(store, published), store.responses.run_rows_digest(published)
    measured, found = store.catalog.measurements(published), store.catalog.guard(published)
    report = done(store, THIN, days=40)
    assert list(report.thinned) == [published]
    assert done(store, THIN, days=41).thinned == {}
    thin = _rows(store, published)
    assert {row.item_id for row in thin} == {row.item_id for row in rows}
    assert [row.logprobs for row in thin] == [row.logprobs for row in rows]
    assert not any(row.output or row.output_ids or any(row.token_logprobs) for row in thin)
    assert store.responses.run_rows_digest(published) == digest
    # What comes after finds all as it was, and what would read outputs is refused.
    grade(store, run_id=published)
    assert guard(store, run_id=published, now=NOW) == found
    assert store.catalog.measurements(published) == measured
    benchmark = store.catalog.benchmark("colours")
    with pytest.raises(UserError, match="retention took its outputs out"):
        list(score_run(store, published, benchmark, [row.item_id for row in rows]))
    done(store, THIN, days=60)
    assert len(_rows(store, published)) == len(rows), "the old files went, the new ones are named"
    left = [name for name in files(settings) if name.startswith(f"responses/{published}/") and "-thin" not in name]
    assert left == [f"responses/{published}/manifest.json"]


def test_selection_runs_and_runs_that_others_stand_on_are_never_thinned(store: Store, answered: Answered) -> None:
    run_id = answered()
    assert done(store, THIN, days=5_000).thinned == {}
    as_health(store, run_id)
    from eval_tasks.records import Baseline

    store.catalog.save_baseline(
        Baseline(env_fingerprint="f" * 32, suite_id="s", run_id=run_id, status="adopted", recorded_at=NOW)
    )
    assert done(store, THIN, days=5_000).thinned == {}


def _rows(store: Store, run_id: str) -> list:  # type: ignore[type-arg]
    found = []
    for benchmark_id in store.responses.benchmarks(run_id):
        found += list(store.responses.rows(run_id, benchmark_id))
    return found
