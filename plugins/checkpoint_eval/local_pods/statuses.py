"""What a supervisor recorded -> the pod's `status`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from checkpoint_eval.local_pods.cluster import timestamp
from checkpoint_eval.local_pods.launch import NODE_IP
from checkpoint_eval.local_pods.selectors import Object

TERMINAL = ("Succeeded", "Failed")
DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"


def condition(kind: str, *, true: bool, reason: str = "", message: str = "") -> dict[str, Any]:
    """One entry of `status.conditions`, changed now."""
    entry = {"type": kind, "status": "True" if true else "False", "lastTransitionTime": timestamp()}
    return entry | {key: value for key, value in (("reason", reason), ("message", message)) if value}


def _with_conditions(old: dict[str, Any], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The new conditions; one that did not change keeps the time of its last transition."""
    before = {c["type"]: c for c in old.get("conditions") or []}
    return [
        c | {"lastTransitionTime": before[c["type"]]["lastTransitionTime"]}
        if before.get(c["type"], {}).get("status") == c["status"]
        else c
        for c in new
    ]


def unschedulable(pod: Object, message: str) -> dict[str, Any]:
    """Pending: there is no room."""
    conditions = [condition("PodScheduled", true=False, reason="Unschedulable", message=message)]
    return {**pod["status"], "phase": "Pending", "conditions": _with_conditions(pod["status"], conditions)}


def waiting(pod: Object, reason: str, message: str = "") -> dict[str, Any]:
    """Pending on the node: the main container waits for `reason`."""
    return _status(pod, {}, "Pending", waiting_for=(reason, message), ready=False)


def observed(pod: Object, state: Mapping[str, Any]) -> dict[str, Any]:
    """The status that a supervisor's record stands for."""
    containers = state["containers"]
    mains = {c["name"] for c in pod["spec"]["containers"]}
    running = any(c["state"] == "running" and c["name"] in mains for c in containers)
    if not state["done"]:
        phase = "Running" if any(c["state"] != "waiting" and c["name"] in mains for c in containers) else "Pending"
    elif state["deadline_exceeded"] or any(c.get("exit_code") != 0 for c in containers):
        phase = "Failed"
    else:
        phase = "Succeeded"
    reason = "PodInitializing" if len(containers) > len(mains) else "ContainerCreating"
    by_name = {c["name"]: c for c in containers}
    status = _status(pod, by_name, phase, waiting_for=(reason, ""), ready=running)
    if state["deadline_exceeded"] and state["done"]:
        status |= {"reason": "DeadlineExceeded", "message": DEADLINE_MESSAGE}
    return status


def deadline_exceeded(pod: Object) -> dict[str, Any]:
    """Failed before any container ran."""
    return {**pod["status"], "phase": "Failed", "reason": "DeadlineExceeded", "message": DEADLINE_MESSAGE}


def _status(
    pod: Object, by_name: Mapping[str, Any], phase: str, *, waiting_for: tuple[str, str], ready: bool
) -> dict[str, Any]:
    spec, old = pod["spec"], pod["status"]
    done = phase in TERMINAL
    inits = spec.get("initContainers") or []
    initialized = all(by_name.get(c["name"], {}).get("exit_code") == 0 for c in inits)
    why = {"reason": "PodCompleted"} if phase == "Succeeded" else {} if ready else {"reason": "ContainersNotReady"}
    conditions = [
        condition("PodScheduled", true=True),
        condition("Initialized", true=initialized or phase == "Succeeded"),
        condition("ContainersReady", true=ready and not done, **why),
        condition("Ready", true=ready and not done, **why),
    ]
    status: dict[str, Any] = {
        "phase": phase,
        "qosClass": old.get("qosClass", "Burstable"),
        "conditions": _with_conditions(old, conditions),
        "hostIP": NODE_IP,
        "podIP": NODE_IP,
        "podIPs": [{"ip": NODE_IP}],
        "startTime": old.get("startTime") or timestamp(),
        "containerStatuses": [_container_status(pod, c, by_name, waiting_for) for c in spec["containers"]],
    }
    if inits:
        status["initContainerStatuses"] = [_container_status(pod, c, by_name, waiting_for) for c in inits]
    return status


def _container_status(
    pod: Object, container: dict[str, Any], by_name: Mapping[str, Any], waiting_for: tuple[str, str]
) -> dict[str, Any]:
    record = by_name.get(container["name"], {"state": "waiting"})
    identity = f"local://{pod['metadata']['uid']}/{container['name']}"
    state: dict[str, Any]
    if record["state"] == "waiting":
        reason, message = waiting_for
        state = {"waiting": {"reason": reason} | ({"message": message} if message else {})}
    elif record["state"] == "running":
        state = {"running": {"startedAt": timestamp(record["started_at"])}}
    else:
        ended = {
            "exitCode": record["exit_code"],
            "reason": record["reason"],
            "startedAt": timestamp(record["started_at"]),
            "finishedAt": timestamp(record["finished_at"]),
            "containerID": identity,
        }
        state = {"terminated": ended | ({"message": record["message"]} if record.get("message") else {})}
    started = record["state"] != "waiting"
    return {
        "name": container["name"],
        "state": state,
        "lastState": {},
        "ready": record["state"] == "running" or record.get("exit_code") == 0,
        "started": record["state"] == "running",
        "restartCount": 0,
        "image": container["image"],
        "imageID": f"local://{container['image']}" if started else "",
        **({"containerID": identity} if started else {}),
    }
