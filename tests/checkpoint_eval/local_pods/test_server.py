"""The server's own life: files it writes, kill -9 and restart, orphans, graceful ends, wrong starts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from kubernetes.client.exceptions import ApiException
from kubernetes.watch import Watch

from .conftest import Space, alive, until

SLEEP_THEN = "import time; print('ready', flush=True); time.sleep({}); print('done'); raise SystemExit({})"


def container_pid(server: Any, pod: Any) -> int:
    state = json.loads((server.state / "pods" / pod.metadata.uid / "state.json").read_text())
    return int(state["containers"][0]["pid"])


def running(space: Space, name: str, seconds: float, code: int = 0) -> Any:
    space.create(name, SLEEP_THEN.format(seconds, code))
    until(lambda: space.logged(name, "ready"))
    return space.read(name)


def test_secrets_are_readable_by_their_owner_only(pod_server: Any) -> None:
    for path in (pod_server.kubeconfig, pod_server.state / "token.json"):
        assert path.stat().st_mode & 0o077 == 0
    assert json.loads((pod_server.state / "ready.json").read_text())["url"].startswith("http://127.0.0.1:")


def test_a_pod_lives_through_kill_9_of_the_server(start_pod_server: Callable[..., Any]) -> None:
    server = start_pod_server()
    url, space = server.url, Space(server.client())
    uid = running(space, "a", 1.0, code=7).metadata.uid
    version = running(space, "b", 2.5).metadata.resource_version
    server.kill()
    time.sleep(1.5)  # `a` ends while nobody listens
    server.start()
    assert server.url == url
    assert space.ended("a").exit_code == 7
    assert space.read("a").metadata.uid == uid
    assert space.ended("b").exit_code == 0
    assert space.log("b") == "ready\ndone\n"
    with pytest.raises(ApiException) as gone:
        list(Watch().stream(space.core.list_namespaced_pod, space.name, resource_version=version, timeout_seconds=5))
    assert gone.value.status == 410


def test_a_deletion_that_was_asked_before_kill_9_is_carried_out_after(start_pod_server: Callable[..., Any]) -> None:
    server = start_pod_server()
    space = Space(server.client())
    pid = container_pid(server, running(space, "a", 60))
    space.core.delete_namespaced_pod("a", space.name, grace_period_seconds=1)
    server.kill()
    server.start()
    until(lambda: space.names() == [])
    assert not alive(pid)


@pytest.mark.parametrize("remains", ["folder", "nothing"])
def test_processes_of_pods_without_a_record_are_ended_at_start(
    start_pod_server: Callable[..., Any], remains: str
) -> None:
    server = start_pod_server()
    space = Space(server.client())
    pod = running(space, "a", 60)
    pid, folder = container_pid(server, pod), server.state / "pods" / pod.metadata.uid
    server.kill()
    if remains == "folder":
        (folder / "pod.json").unlink()
    else:
        shutil.rmtree(folder)
    server.start()
    until(lambda: not alive(pid))
    assert space.names() == []
    assert not folder.exists()


def test_a_graceful_stop_leaves_pods_running(start_pod_server: Callable[..., Any]) -> None:
    server = start_pod_server()
    space = Space(server.client())
    pid = container_pid(server, running(space, "a", 60))
    assert server.stop() == 0
    assert alive(pid)
    assert not (server.state / "ready.json").exists()
    server.start()
    assert space.read("a").status.phase == "Running"


def test_kill_on_exit_ends_them_and_keeps_no_zombie(start_pod_server: Callable[..., Any]) -> None:
    server = start_pod_server("--kill-on-exit")
    space = Space(server.client())
    pid = container_pid(server, running(space, "a", 60))
    assert server.stop() == 0
    assert not alive(pid)


def test_finished_supervisors_are_reaped(start_pod_server: Callable[..., Any]) -> None:
    server = start_pod_server()
    space = Space(server.client())
    for name in ("a", "b", "c"):
        space.create(name, "pass")
        space.wait(name)
    until(lambda: psutil.Process(server.process.pid).children() == [])


def start_wrongly(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "checkpoint_eval.local_pods", *arguments]
    repository = Path(__file__).parents[3]
    env = os.environ | {"PYTHONPATH": f"{repository / 'plugins'}{os.pathsep}{repository}"}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)


def test_two_servers_on_one_state_are_refused(pod_server: Any, tmp_path: Path) -> None:
    second = start_wrongly("--state", str(pod_server.state), "--kubeconfig", str(tmp_path / "kubeconfig"))
    assert second.returncode == 2
    assert "another local pod server uses" in second.stderr


def test_a_taken_port_is_named(pod_server: Any, tmp_path: Path) -> None:
    port = pod_server.url.rsplit(":", 1)[1]
    arguments = ("--state", str(tmp_path / "state"), "--kubeconfig", str(tmp_path / "kubeconfig"), "--port", port)
    refused = start_wrongly(*arguments)
    assert refused.returncode == 2
    assert f"port {port} on 127.0.0.1 is taken" in refused.stderr
    assert not (tmp_path / "kubeconfig").exists()


def test_a_server_whose_passes_ended_does_not_go_on_without_them(tmp_path: Path) -> None:
    """It would take pods that never start; a service manager brings back one that has ended."""
    script = (
        "from checkpoint_eval.local_pods.__main__ import main\n"
        "from checkpoint_eval.local_pods.kubelet import Kubelet\n"
        "async def run(self): raise RuntimeError('passes ended')\n"
        "Kubelet.run = run\n"
        f"main(['--state', {str(tmp_path / 'state')!r}, '--kubeconfig', {str(tmp_path / 'kubeconfig')!r}])\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "passes ended" in done.stderr
