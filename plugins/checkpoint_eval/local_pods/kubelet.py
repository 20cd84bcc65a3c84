"""Makes pods run: admits them where there is room, starts their supervisors, reads their records, ends them.

One pass over all pods, a few times a second, that looks only at what lies on disk and at living processes; so a pass
after a restart is a pass like any other, and that is what adopting running pods consists of. Knows no HTTP.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import psutil

from checkpoint_eval.local_pods import capacity, statuses, supervisor
from checkpoint_eval.local_pods.cluster import Cluster, timestamp
from checkpoint_eval.local_pods.launch import MARK, NODE_NAME, MissingReferenceError, launch_spec
from checkpoint_eval.local_pods.orphans import clean_up, kill_processes_of
from checkpoint_eval.local_pods.selectors import Object

PASS_SECONDS = 0.1
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Node:
    """What the one node offers. `capacity` in cores and devices, by resource name."""

    capacity: Mapping[str, Decimal] = field(default_factory=lambda: {"cpu": Decimal(os.cpu_count() or 1)})
    pass_env: tuple[str, ...] = ()
    refused_images: tuple[str, ...] = ()


class Kubelet:
    """Scheduler and kubelet of the one node."""

    def __init__(self, cluster: Cluster, node: Node) -> None:
        self.cluster = cluster
        self.node = node
        self._started: dict[str, subprocess.Popen[bytes]] = {}  # supervisors of this server's life, by pod uid
        self._states: dict[str, tuple[int, dict[str, Any]]] = {}
        self._stopped: set[str] = set()
        clean_up(cluster.pods_dir, {str(pod["metadata"]["uid"]) for pod in cluster.pods()})

    async def run(self) -> None:
        """Passes until cancelled. One pod's error is logged and does not stop the others."""
        while True:
            used = capacity.used(self.cluster.pods())
            for pod in self.cluster.pods():
                try:
                    self._step(pod, used)
                except (OSError, ValueError, LookupError, TypeError, psutil.Error, subprocess.SubprocessError):
                    _log.exception("pod %s", pod["metadata"]["name"])
            await asyncio.sleep(PASS_SECONDS)

    def delete(self, pod: Object, grace_seconds: int | None) -> Object:
        """Begin the end of a pod, or remove it at once when nothing of it runs. Returns the pod as it now is."""
        meta = pod["metadata"]
        grace = pod["spec"]["terminationGracePeriodSeconds"] if grace_seconds is None else max(grace_seconds, 0)
        if "deletionTimestamp" in meta:
            grace = min(grace, meta["deletionGracePeriodSeconds"])
        if pod["status"]["phase"] in statuses.TERMINAL or not self._launched(pod):
            self._remove(pod)
            return pod
        first = "deletionTimestamp" not in meta
        marks = {"deletionTimestamp": timestamp(time.time() + grace), "deletionGracePeriodSeconds": grace}
        supervisor.write_atomically(self.cluster.pod_dir(pod) / "stop.json", {"grace_seconds": grace})
        self._stopped.discard(meta["uid"])
        pod = self.cluster.save_pod({**pod, "metadata": {**meta, **marks}})
        if first:
            name = pod["spec"]["containers"][0]["name"]
            self.cluster.record_event(pod, "Normal", "Killing", f"Stopping container {name}", name)
        return pod

    async def stop_all(self, grace_seconds: int) -> None:
        """End every running pod and wait for it; finished ones keep their records."""
        running = [pod for pod in self.cluster.pods() if pod["status"]["phase"] not in statuses.TERMINAL]
        for pod in running:
            self.delete(pod, min(grace_seconds, pod["spec"]["terminationGracePeriodSeconds"]))
        end = time.monotonic() + grace_seconds + 5
        while time.monotonic() < end:
            left = {pod["metadata"]["uid"] for pod in self.cluster.pods()}
            if not any(pod["metadata"]["uid"] in left for pod in running):
                return
            await asyncio.sleep(PASS_SECONDS)

    def _step(self, pod: Object, used: dict[str, Decimal]) -> None:
        if pod["status"]["phase"] in statuses.TERMINAL:
            self._reap(pod)
            return
        if not capacity.admitted(pod):
            self._schedule(pod, used)
        elif not self._launched(pod):
            self._launch(pod)
        else:
            self._observe(pod)

    def _launched(self, pod: Object) -> bool:
        return (self.cluster.pod_dir(pod) / "launch.json").exists()

    def _set_status(self, pod: Object, status: dict[str, Any]) -> Object:
        return pod if status == pod["status"] else self.cluster.save_pod({**pod, "status": status})

    def _schedule(self, pod: Object, used: dict[str, Decimal]) -> None:
        lacking = capacity.lacking(pod, used, self.node.capacity)
        if lacking:
            message = f"0/1 nodes are available: {', '.join(f'1 Insufficient {name}' for name in lacking)}."
            status = statuses.unschedulable(pod, message)
            if status != pod["status"]:
                pod = self._set_status(pod, status)
                self.cluster.record_event(pod, "Warning", "FailedScheduling", message)
            return
        capacity.add(used, capacity.pod_requests(pod))
        pod = {**pod, "spec": {**pod["spec"], "nodeName": NODE_NAME}}
        pod = self.cluster.save_pod({**pod, "status": statuses.waiting(pod, "ContainerCreating")})
        where = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        self.cluster.record_event(pod, "Normal", "Scheduled", f"Successfully assigned {where} to {NODE_NAME}")
        self._launch(pod)

    def _launch(self, pod: Object) -> None:
        container = pod["spec"]["containers"][0]
        image = str(container["image"])
        if image in self.node.refused_images:
            self._refuse_image(pod, container["name"], image)
            return
        pod_dir = self.cluster.pod_dir(pod)
        try:
            launch = launch_spec(pod, pod_dir, self.node.pass_env)
        except MissingReferenceError as error:
            status = statuses.waiting(pod, "CreateContainerConfigError", str(error))
            if status != pod["status"]:
                pod = self._set_status(pod, status)
                self.cluster.record_event(pod, "Warning", "Failed", f"Error: {error}", container["name"])
            self._end_waiting_at_deadline(pod)
            return
        supervisor.write_atomically(pod_dir / "launch.json", launch)
        for reason, message in (
            ("Pulled", f'Container image "{image}" already present on machine'),
            ("Created", f"Created container: {container['name']}"),
        ):
            self.cluster.record_event(pod, "Normal", reason, message, container["name"])
        self._start_supervisor(pod)

    def _start_supervisor(self, pod: Object) -> None:
        pod_dir = self.cluster.pod_dir(pod)
        with (pod_dir / "supervisor.log").open("ab") as log:
            self._started[pod["metadata"]["uid"]] = subprocess.Popen(
                [sys.executable, "-I", supervisor.__file__, str(pod_dir)],
                env={MARK: str(pod_dir), "PATH": os.defpath},
                cwd=pod_dir,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _refuse_image(self, pod: Object, container: str, image: str) -> None:
        old = pod["status"]["containerStatuses"][0]["state"].get("waiting", {}).get("reason")
        pull_error = f'failed to pull and unpack image "{image}": not found'
        if old == "ContainerCreating":
            message = f'Failed to pull image "{image}": {pull_error}'
            pod = self._set_status(pod, statuses.waiting(pod, "ErrImagePull", pull_error))
            self.cluster.record_event(pod, "Normal", "Pulling", f'Pulling image "{image}"', container)
            self.cluster.record_event(pod, "Warning", "Failed", message, container)
        elif old == "ErrImagePull":
            message = f'Back-off pulling image "{image}": ErrImagePull: {pull_error}'
            pod = self._set_status(pod, statuses.waiting(pod, "ImagePullBackOff", message))
            self.cluster.record_event(pod, "Normal", "BackOff", f'Back-off pulling image "{image}"', container)
        self._end_waiting_at_deadline(pod)

    def _end_waiting_at_deadline(self, pod: Object) -> None:
        seconds = pod["spec"].get("activeDeadlineSeconds")
        started = datetime.strptime(pod["status"]["startTime"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        if seconds is not None and time.time() >= started.timestamp() + seconds:
            pod = self._set_status(pod, statuses.deadline_exceeded(pod))
            self.cluster.record_event(pod, "Warning", "DeadlineExceeded", statuses.DEADLINE_MESSAGE)

    def _observe(self, pod: Object) -> None:
        alive = self._supervisor_alive(pod)
        state = self._state(pod)
        if state is None:
            if not alive and pod["metadata"]["uid"] in self._started:
                self._record_lost(pod, _unborn(pod))
            elif not alive:  # the server was killed between writing launch.json and starting the supervisor
                self._start_supervisor(pod)
            return
        if not state["done"] and not alive:
            self._record_lost(pod, state)
            return
        if "deletionTimestamp" in pod["metadata"]:
            self._signal_stop(pod, state)
        before, pod = pod, self._set_status(pod, statuses.observed(pod, state))
        self._tell(before, pod, state)
        if state["done"]:
            self._reap(pod)
            if "deletionTimestamp" in pod["metadata"]:
                self._remove(pod)

    def _state(self, pod: Object) -> dict[str, Any] | None:
        """The supervisor's record, read again only when it was written again."""
        path, uid = self.cluster.pod_dir(pod) / "state.json", pod["metadata"]["uid"]
        try:
            written = path.stat().st_mtime_ns
        except FileNotFoundError:
            return None
        if uid not in self._states or self._states[uid][0] != written:
            self._states[uid] = (written, json.loads(path.read_text("utf-8")))
        return self._states[uid][1]

    def _supervisor_alive(self, pod: Object) -> bool:
        child = self._started.get(pod["metadata"]["uid"])
        started = child is not None and child.poll() is None
        state = self._state(pod)
        if state is None:
            return started
        try:  # by what it recorded of itself: after a restart, a child of ours may have found it there and left
            process = psutil.Process(state["pid"])
            return process.create_time() == state["create_time"] and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    def _record_lost(self, pod: Object, state: dict[str, Any]) -> None:
        """A supervisor ended without a record: end what it left, and say so as a kubelet does."""
        kill_processes_of(self.cluster.pod_dir(pod))
        state = json.loads(json.dumps(state))
        lost = {"exit_code": 137, "reason": "ContainerStatusUnknown", "finished_at": time.time()}
        lost["message"] = f"The container's supervisor ended without a record. {self._last_words(pod)}".strip()
        for container in state["containers"]:
            if container["state"] == "running":
                container.update(lost, state="terminated")
        if all(c["state"] != "terminated" or c["exit_code"] == 0 for c in state["containers"]):
            state["containers"][-1].update(lost, state="terminated", started_at=time.time())
        state["done"] = True
        supervisor.write_atomically(self.cluster.pod_dir(pod) / "state.json", state)

    def _last_words(self, pod: Object) -> str:
        """The last line that the supervisor printed: of a traceback, the error."""
        lines = (self.cluster.pod_dir(pod) / "supervisor.log").read_text("utf-8", errors="replace").splitlines()
        return lines[-1] if lines else ""

    def _signal_stop(self, pod: Object, state: dict[str, Any]) -> None:
        """Once per deletion request; only now is it sure that the supervisor listens."""
        uid = pod["metadata"]["uid"]
        if uid not in self._stopped and not state["done"]:
            self._stopped.add(uid)
            with suppress(ProcessLookupError):
                os.kill(state["pid"], signal.SIGTERM)

    def _tell(self, before: Object, pod: Object, state: dict[str, Any]) -> None:
        """Events for what has changed between two statuses."""
        old = {s["name"]: s["state"] for s in before["status"].get("containerStatuses") or []}
        for status in pod["status"]["containerStatuses"]:
            name, was, now = status["name"], old.get(status["name"], {}), status["state"]
            if "waiting" in was and "waiting" not in now:
                self.cluster.record_event(pod, "Normal", "Started", f"Started container {name}", name)
            ended = now.get("terminated", {})
            if "terminated" not in was and ended.get("reason") == "OOMKilled":
                message = f"Memory limit exceeded, killed the processes of container {name}"
                self.cluster.record_event(pod, "Warning", "OOMKilling", message, name)
            elif "terminated" not in was and ended.get("reason") == "StartError":
                self.cluster.record_event(pod, "Warning", "Failed", f"Error: {ended.get('message', '')}", name)
        if state["deadline_exceeded"] and pod["status"]["phase"] != before["status"]["phase"]:
            self.cluster.record_event(pod, "Warning", "DeadlineExceeded", statuses.DEADLINE_MESSAGE)

    def _reap(self, pod: Object) -> None:
        child = self._started.get(pod["metadata"]["uid"])
        if child is not None and child.poll() is not None:
            del self._started[pod["metadata"]["uid"]]

    def _remove(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        child = self._started.pop(uid, None)
        if child is not None:
            child.wait(timeout=10)  # it has written its last record, so it is about to end
        self._states.pop(uid, None)
        self._stopped.discard(uid)
        self.cluster.remove_pod(pod)


def _unborn(pod: Object) -> dict[str, Any]:
    containers = [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]
    waiting = [{"name": c["name"], "state": "waiting"} for c in containers]
    return {"pid": 0, "create_time": 0.0, "done": False, "deadline_exceeded": False, "containers": waiting}
