"""What happens to processes: signals, limits, deadlines, admission, init containers, images, leftovers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from .conftest import Space, alive, until

TRAP = """
import signal, sys, time
def end(*_):
    print('ending', flush=True)
    sys.exit({code})
signal.signal(signal.SIGTERM, {handler})
print('ready', flush=True)
time.sleep(60)
"""


def gone(space: Space, name: str) -> bool:
    return name not in space.names()


def test_exit_codes_and_termination_messages(space: Space) -> None:
    space.create(
        "a", "import os, sys; open(os.environ['TERMINATION_MESSAGE_PATH'], 'w').write('no such plan'); sys.exit(2)"
    )
    ended = space.ended("a")
    assert (ended.exit_code, ended.reason, ended.message) == (2, "Error", "no such plan")
    assert space.read("a").status.phase == "Failed"


def test_the_log_is_the_message_when_asked_for_and_there_is_none(space: Space) -> None:
    space.create(
        "a", "raise SystemExit('out of ideas')", container={"terminationMessagePolicy": "FallbackToLogsOnError"}
    )
    assert space.ended("a").message == "out of ideas"


def test_a_signal_is_128_and_its_number(space: Space) -> None:
    space.create("a", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert space.ended("a").exit_code == 139


def test_a_command_that_does_not_exist_is_a_start_error(space: Space) -> None:
    space.create("a", container={"command": ["/no/such/program"]})
    ended = space.ended("a")
    assert (ended.exit_code, ended.reason) == (128, "StartError")
    assert "/no/such/program" in ended.message
    assert "Failed" in space.reasons("a")


def test_deletion_asks_first_and_waits(space: Space) -> None:
    space.create("a", TRAP.format(code=0, handler="end"))
    until(lambda: space.logged("a", "ready"))
    answer = space.core.delete_namespaced_pod("a", space.name, grace_period_seconds=20)
    assert answer.metadata.deletion_grace_period_seconds == 20
    until(lambda: gone(space, "a"), seconds=15)
    assert space.reasons("a")[-1] == "Killing"


def test_deletion_kills_what_does_not_listen(space: Space) -> None:
    space.create("a", TRAP.format(code=0, handler="signal.SIG_IGN"))
    until(lambda: space.logged("a", "ready"))
    space.core.delete_namespaced_pod("a", space.name, grace_period_seconds=1)
    assert space.read("a").metadata.deletion_timestamp is not None
    until(lambda: gone(space, "a"), seconds=10)


def test_a_pod_over_its_memory_is_killed_with_all_its_processes(space: Space) -> None:
    script = """
import subprocess, sys, time
child = [sys.executable, '-c', 'x = bytearray(200_000_000); import time; time.sleep(60)']
print(subprocess.Popen(child).pid, flush=True)
time.sleep(60)
"""
    space.create("a", script, container={"resources": {"limits": {"memory": "100Mi"}}})
    ended = space.ended("a")
    assert (ended.exit_code, ended.reason) == (137, "OOMKilled")
    assert "OOMKilling" in space.reasons("a")
    assert not alive(int(space.log("a")))


def test_a_pod_within_its_memory_lives(space: Space) -> None:
    space.create("a", "x = bytearray(20_000_000)", container={"resources": {"limits": {"memory": "200Mi"}}})
    assert space.ended("a").reason == "Completed"


def test_a_deadline_ends_the_pod(space: Space) -> None:
    space.create("a", "import time; time.sleep(60)", activeDeadlineSeconds=1)
    pod = space.wait("a")
    assert (pod.status.phase, pod.status.reason) == ("Failed", "DeadlineExceeded")
    assert pod.status.container_statuses[0].state.terminated.exit_code == 143
    assert "DeadlineExceeded" in space.reasons("a")


def test_what_the_main_process_leaves_behind_ends_with_it(space: Space) -> None:
    script = """
import subprocess
print(subprocess.Popen(['setsid', 'sleep', '60'], stdout=subprocess.DEVNULL).pid, flush=True)
"""
    space.create("a", script)
    assert space.ended("a").exit_code == 0
    assert not alive(int(space.log("a")))


def test_init_containers_run_first_in_order_and_stop_the_pod_when_they_fail(space: Space) -> None:
    def init(name: str, script: str) -> dict[str, Any]:
        return {"name": name, "image": "x", "command": ["python", "-c", script]}

    space.create("a", "print('main')", initContainers=[init("one", "print(1)"), init("two", "print(2)")])
    space.create("b", "print('main')", initContainers=[init("one", "raise SystemExit(9)"), init("two", "print(2)")])
    assert space.wait("a").status.phase == "Succeeded"
    assert [space.log("a", container=name) for name in ("one", "two", "base")] == ["1\n", "2\n", "main\n"]
    failed = space.wait("b").status
    assert failed.phase == "Failed"
    assert failed.init_container_statuses[0].state.terminated.exit_code == 9
    assert failed.container_statuses[0].state.waiting.reason == "PodInitializing"


def test_an_image_that_is_refused_backs_off(space: Space) -> None:
    space.create("a", container={"image": "registry.example/absent:1"})
    until(lambda: "BackOff" in space.reasons("a"))
    pod = space.read("a")
    assert (pod.status.phase, pod.status.container_statuses[0].state.waiting.reason) == ("Pending", "ImagePullBackOff")
    assert space.reasons("a") == ["Scheduled", "Pulling", "Failed", "BackOff"]
    space.core.delete_namespaced_pod("a", space.name)
    assert gone(space, "a")


def test_a_required_secret_keeps_the_pod_waiting(space: Space) -> None:
    space.create("a", container={"envFrom": [{"secretRef": {"name": "s"}}]})
    waiting = until(lambda: (s := space.read("a").status.container_statuses) and s[0].state.waiting)
    until(lambda: space.read("a").status.container_statuses[0].state.waiting.reason == "CreateContainerConfigError")
    assert waiting is not None
    assert space.read("a").status.container_statuses[0].state.waiting.message == 'secret "s" not found'


def test_pods_wait_until_there_is_room(start_pod_server: Callable[..., Any]) -> None:
    space = Space(start_pod_server("--cpu", "1").client())
    half = {"resources": {"requests": {"cpu": "600m"}}}
    space.create("a", "import time; time.sleep(60)", container=half)
    space.wait("a", "Running")
    space.create("b", "pass", container=half)
    until(lambda: "FailedScheduling" in space.reasons("b"))
    condition = space.read("b").status.conditions[0]
    assert (condition.type, condition.status, condition.reason) == ("PodScheduled", "False", "Unschedulable")
    assert condition.message == "0/1 nodes are available: 1 Insufficient cpu."
    space.create("c", "pass", container={"resources": {"requests": {"cpu": "300m"}}})
    assert space.wait("c").status.phase == "Succeeded"
    assert space.read("b").status.phase == "Pending"
    space.core.delete_namespaced_pod("a", space.name)
    assert space.wait("b").status.phase == "Succeeded"


def test_a_device_that_the_node_lacks_is_waited_for(start_pod_server: Callable[..., Any]) -> None:
    space = Space(start_pod_server().client())
    space.create("a", "pass", container={"resources": {"limits": {"nvidia.com/gpu": "1"}}})
    until(lambda: space.read("a").status.conditions)
    assert space.read("a").status.conditions[0].message.endswith("1 Insufficient nvidia.com/gpu.")


def test_a_lost_supervisor_is_told_from_a_failed_container(space: Space, pod_server: Any) -> None:
    space.create("a", "import time; print('ready', flush=True); time.sleep(60)")
    until(lambda: space.logged("a", "ready"))
    uid = space.read("a").metadata.uid
    state = json.loads((pod_server.state / "pods" / uid / "state.json").read_text())
    psutil.Process(state["pid"]).kill()
    ended = space.ended("a")
    assert (ended.exit_code, ended.reason) == (137, "ContainerStatusUnknown")
    assert not alive(state["containers"][0]["pid"])


@pytest.mark.parametrize("name", ["a", "b"])
def test_nothing_of_a_deleted_pod_stays_on_disk(space: Space, pod_server: Any, name: str) -> None:
    space.create(name)
    uid = space.wait(name).metadata.uid
    assert (pod_server.state / "pods" / uid).is_dir()
    space.core.delete_namespaced_pod(name, space.name)
    assert not (pod_server.state / "pods" / uid).exists()
