"""The objects of the API: pods and events, their versions, what changed since, and their copies on disk.

Every object is a JSON dictionary that is replaced, never changed in place, so that a watcher can be handed old and new.
Knows neither HTTP nor processes.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any
from uuid import uuid4

from checkpoint_eval.local_pods.errors import expired, not_found
from checkpoint_eval.local_pods.selectors import Object, Test
from checkpoint_eval.local_pods.supervisor import write_atomically

HISTORY = 4096
EVENTS = 2000
VERSIONS_AT_ONCE = 1000  # versions set aside by one write, so that none is used twice after a crash


def timestamp(seconds: float | None = None) -> str:
    """A Kubernetes time: RFC 3339 to the second, of an epoch time or of now."""
    moment = datetime.now(UTC) if seconds is None else datetime.fromtimestamp(seconds, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One step in the life of an object: `old` is None when it was added, `new` when it was deleted."""

    version: int
    resource: str
    old: Object | None
    new: Object | None


class Cluster:
    """All objects under one state directory."""

    def __init__(self, state_dir: Path) -> None:
        self.pods_dir = state_dir / "pods"
        self.pods_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._pods: dict[tuple[str, str], Object] = {}
        self._events: dict[str, Object] = {}
        self._events_file = state_dir / "events.jsonl"
        self._version_file = state_dir / "resource_version.json"
        self._version = self._reserved = self._recorded_version()
        self._history: deque[Change] = deque(maxlen=HISTORY)
        self._changed = asyncio.Event()
        self.closed = False
        self._load()
        self._oldest = self._version  # changes before a restart are not kept

    def _recorded_version(self) -> int:
        try:
            return int(json.loads(self._version_file.read_text("utf-8"))["reserved"])
        except FileNotFoundError:
            return 0

    def _load(self) -> None:
        for path in sorted(self.pods_dir.glob("*/pod.json")):
            pod = json.loads(path.read_text("utf-8"))
            self._pods[pod["metadata"]["namespace"], pod["metadata"]["name"]] = pod
        if self._events_file.exists():
            for line in self._events_file.read_bytes().splitlines()[-EVENTS:]:
                try:
                    event = json.loads(line)
                except ValueError:
                    continue  # the line that was being written when the server was killed
                self._events[event["metadata"]["name"]] = event
        lines = "".join(json.dumps(event) + "\n" for event in self._events.values())
        self._events_file.write_text(lines, "utf-8")

    @property
    def version(self) -> int:
        """The newest resource version."""
        return self._version

    def next_version(self) -> str:
        """A resource version that was never used, not even before a crash."""
        self._version += 1
        if self._version > self._reserved:
            self._reserved = self._version + VERSIONS_AT_ONCE
            write_atomically(self._version_file, {"reserved": self._reserved})
        return str(self._version)

    def pod_dir(self, pod: Object) -> Path:
        """Where a pod's record, log and directories lie."""
        return self.pods_dir / str(pod["metadata"]["uid"])

    def pods(self) -> list[Object]:
        """All pods, oldest first."""
        return sorted(self._pods.values(), key=lambda pod: pod["metadata"]["uid"])

    def has_pod(self, namespace: str, name: str) -> bool:
        """Whether that name is taken."""
        return (namespace, name) in self._pods

    def pod(self, namespace: str, name: str) -> Object:
        """One pod. Raises ApiError 404."""
        try:
            return self._pods[namespace, name]
        except KeyError:
            raise not_found("pods", name) from None

    def objects(self, resource: str, namespace: str | None) -> list[Object]:
        """What a list request sees, in the order of namespace and name."""
        kept = self._pods.values() if resource == "pods" else self._events.values()
        inside = [o for o in kept if namespace is None or o["metadata"]["namespace"] == namespace]
        return sorted(inside, key=lambda o: (o["metadata"]["namespace"], o["metadata"]["name"]))

    def save_pod(self, pod: Object) -> Object:
        """Store a new or changed pod under a new version."""
        key = pod["metadata"]["namespace"], pod["metadata"]["name"]
        pod = {**pod, "metadata": {**pod["metadata"], "resourceVersion": self.next_version()}}
        directory = self.pod_dir(pod)
        directory.mkdir(exist_ok=True, mode=0o700)
        write_atomically(directory / "pod.json", pod)
        old, self._pods[key] = self._pods.get(key), pod
        self._announce("pods", old, pod)
        return pod

    def remove_pod(self, pod: Object) -> None:
        """Forget a pod and everything in its directory; the record goes first, so that a crash leaves an orphan."""
        del self._pods[pod["metadata"]["namespace"], pod["metadata"]["name"]]
        self.next_version()
        (self.pod_dir(pod) / "pod.json").unlink(missing_ok=True)
        shutil.rmtree(self.pod_dir(pod), ignore_errors=True)
        self._announce("pods", pod, None)

    def record_event(self, pod: Object, kind: str, reason: str, message: str, container: str | None = None) -> None:
        """Add an event about a pod. `kind` is Normal or Warning."""
        meta, now = pod["metadata"], timestamp()
        involved = {"kind": "Pod", "apiVersion": "v1", "resourceVersion": meta["resourceVersion"]}
        involved |= {key: meta[key] for key in ("name", "namespace", "uid")}
        if container is not None:
            involved["fieldPath"] = f"spec.containers{{{container}}}"
        source = "default-scheduler" if reason in ("Scheduled", "FailedScheduling") else "kubelet"
        version = self.next_version()
        event = {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {
                "name": f"{meta['name']}.{int(version):x}",
                "namespace": meta["namespace"],
                "uid": str(uuid4()),
                "resourceVersion": version,
                "creationTimestamp": now,
            },
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "source": {"component": source},
            "reportingComponent": source,
            "reportingInstance": "",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": kind,
        }
        self._events[event["metadata"]["name"]] = event  # type: ignore[index]
        while len(self._events) > EVENTS:
            del self._events[next(iter(self._events))]
        with self._events_file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")
        self._announce("events", None, event)

    def _announce(self, resource: str, old: Object | None, new: Object | None) -> None:
        if len(self._history) == HISTORY:
            self._oldest = self._history[0].version
        self._history.append(Change(version=self._version, resource=resource, old=old, new=new))
        self._wake()

    def _changes_since(self, version: int) -> list[Change]:
        newer = takewhile(lambda change: change.version > version, reversed(self._history))
        return list(newer)[::-1]

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def close(self) -> None:
        """End every watch and every followed log."""
        self.closed = True
        self._wake()

    async def wait_for_change(self, seconds: float) -> None:
        """Return at the next change of anything, or after `seconds`."""
        try:
            await asyncio.wait_for(self._changed.wait(), max(seconds, 0.0))
        except TimeoutError:
            return

    async def watch(
        self, resource: str, namespace: str | None, matches: Test, since: int, seconds: float, *, bookmarks: bool
    ) -> AsyncIterator[dict[str, Any]]:
        """Watch events after version `since`, for `seconds`. A version that is not kept gives one ERROR 410."""
        end = asyncio.get_running_loop().time() + seconds
        while not self.closed:
            if since < self._oldest:
                yield {"type": "ERROR", "object": expired(since, self._oldest).status()}
                return
            for change in self._changes_since(since):
                since = change.version
                if change.resource == resource:
                    for event in _as_seen(change, namespace, matches):
                        yield event
            remaining = end - asyncio.get_running_loop().time()
            if remaining <= 0:
                break
            if not self._history or self._history[-1].version <= since:
                await self.wait_for_change(remaining)
        if bookmarks:
            kind = {"pods": "Pod", "events": "Event"}[resource]
            meta = {"resourceVersion": str(since), "creationTimestamp": None}
            yield {"type": "BOOKMARK", "object": {"kind": kind, "apiVersion": "v1", "metadata": meta}}


def _as_seen(change: Change, namespace: str | None, matches: Test) -> Iterator[dict[str, Any]]:
    """A change as a watcher with selectors sees it: an object that leaves the selection was deleted for it."""

    def chosen(candidate: Object | None) -> bool:
        if candidate is None or (namespace is not None and candidate["metadata"]["namespace"] != namespace):
            return False
        return matches(candidate)

    before, after = chosen(change.old), chosen(change.new)
    if after:
        yield {"type": "MODIFIED" if before else "ADDED", "object": change.new}
    elif before:
        assert change.old is not None
        meta = {**change.old["metadata"], "resourceVersion": str(change.version)}
        yield {"type": "DELETED", "object": {**(change.new or change.old), "metadata": meta}}
