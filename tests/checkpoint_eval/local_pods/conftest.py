"""Pods for tests: a body with one Python script in it, and waiting for a phase through the real client."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any

import psutil
import pytest


def pod_body(name: str, script: str = "print('hello')", **spec: Any) -> dict[str, Any]:
    """A pod that runs a Python script."""
    container = {"name": "base", "image": "worker:test", "command": ["python", "-c", script]}
    container |= spec.pop("container", {})
    labels = spec.pop("labels", {})
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container], **spec}}


def until(condition: Callable[[], Any], seconds: float = 20.0) -> Any:
    """The first truthy value of `condition`."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, "not so within the time"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    """Whether the process runs; one that has ended and only waits for its parent does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Space:
    """A namespace of a test's own on a live server, through the real client."""

    def __init__(self, core: Any) -> None:
        self.core = core
        self.name = f"test-{uuid.uuid4().hex[:8]}"

    def create(self, name: str, script: str = "print('hello')", **spec: Any) -> Any:
        """Post a pod."""
        return self.core.create_namespaced_pod(self.name, pod_body(name, script, **spec))

    def read(self, name: str) -> Any:
        """The pod now."""
        return self.core.read_namespaced_pod(name, self.name)

    def wait(self, name: str, *phases: str) -> Any:
        """The pod once it is in one of the phases; by default once it has ended."""
        wanted = phases or ("Succeeded", "Failed")
        return until(lambda: (pod := self.read(name)).status.phase in wanted and pod)

    def ended(self, name: str) -> Any:
        """The terminated state of the pod's container."""
        return self.wait(name).status.container_statuses[0].state.terminated

    def log(self, name: str, **options: Any) -> str:
        """What it printed. Raw, since the client turns undecoded bytes into their repr."""
        response = self.core.read_namespaced_pod_log(name, self.name, _preload_content=False, **options)
        return str(response.read().decode("utf-8", errors="backslashreplace"))

    def logged(self, name: str, text: str) -> bool:
        """Whether the running pod has printed `text` by now."""
        return self.read(name).status.phase != "Pending" and text in self.log(name)

    def reasons(self, name: str) -> list[str]:
        """The reasons of its events, in order."""
        events = self.core.list_namespaced_event(self.name, field_selector=f"involvedObject.name={name}").items
        return [e.reason for e in sorted(events, key=lambda e: int(e.metadata.resource_version))]

    def names(self, **selectors: str) -> list[str]:
        """Names of the pods that the selectors choose."""
        return [pod.metadata.name for pod in self.core.list_namespaced_pod(self.name, **selectors).items]


@pytest.fixture
def space(pod_server: Any) -> Space:
    """A namespace on the shared server."""
    return Space(pod_server.client())
