"""Versions only grow, watches lose nothing that they can still give, and say so when they cannot."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from checkpoint_eval.local_pods import cluster as module
from checkpoint_eval.local_pods.admission import admit
from checkpoint_eval.local_pods.cluster import Cluster
from checkpoint_eval.local_pods.selectors import selector


def pod(name: str, **labels: str) -> dict[str, Any]:
    container = {"name": "base", "image": "x", "command": ["true"]}
    return admit({"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container]}}, "default")


def watched(cluster: Cluster, since: int, labels: str | None = None, *, bookmarks: bool = False) -> list[Any]:
    async def collect() -> list[Any]:
        matches = selector("pods", labels, None)
        events = cluster.watch("pods", None, matches, since, 0.0, bookmarks=bookmarks)
        return [event async for event in events]

    return asyncio.run(collect())


def seen(events: list[Any]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


def test_a_watch_gives_every_change_since_its_version(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    start = cluster.version
    first = cluster.save_pod(pod("a"))
    cluster.save_pod({**first, "status": {"phase": "Running"}})
    cluster.remove_pod(first)
    assert seen(watched(cluster, start)) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert seen(watched(cluster, int(first["metadata"]["resourceVersion"]))) == [("MODIFIED", "a"), ("DELETED", "a")]


def test_an_object_that_leaves_the_selection_was_deleted_for_its_watcher(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    start = cluster.version
    first = cluster.save_pod(pod("a", state="new"))
    cluster.save_pod({**first, "metadata": {**first["metadata"], "labels": {"state": "old"}}})
    assert seen(watched(cluster, start, "state=new")) == [("ADDED", "a"), ("DELETED", "a")]
    assert seen(watched(cluster, start, "state=old")) == [("ADDED", "a")]


def test_a_bookmark_carries_the_version_to_go_on_from(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    saved = cluster.save_pod(pod("a"))
    *_, last = watched(cluster, 0, bookmarks=True)
    assert last["type"] == "BOOKMARK"
    assert last["object"]["metadata"]["resourceVersion"] == saved["metadata"]["resourceVersion"]


def test_a_version_that_is_too_old_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HISTORY", 3)
    cluster = Cluster(tmp_path)
    start = cluster.version
    saved = cluster.save_pod(pod("a"))
    for _ in range(4):
        saved = cluster.save_pod(saved)
    (event,) = watched(cluster, start)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_after_a_crash_no_version_is_used_again_and_old_watches_are_told(tmp_path: Path) -> None:
    before = Cluster(tmp_path)
    last = int(before.save_pod(pod("a"))["metadata"]["resourceVersion"])
    after = Cluster(tmp_path)
    assert [p["metadata"]["name"] for p in after.pods()] == ["a"]
    assert int(after.save_pod(pod("b"))["metadata"]["resourceVersion"]) > last
    assert watched(after, last)[0]["object"]["code"] == 410


def test_events_survive_a_torn_last_line(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    saved = cluster.save_pod(pod("a"))
    cluster.record_event(saved, "Normal", "Started", "Started container base", "base")
    with (tmp_path / "events.jsonl").open("a") as file:
        file.write('{"kind": "Ev')
    (event,) = Cluster(tmp_path).objects("events", "default")
    assert event["reason"] == "Started"
    assert event["involvedObject"]["fieldPath"] == "spec.containers{base}"
