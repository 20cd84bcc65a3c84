"""Admission by requests: what pods ask for, and whether there is room. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

from checkpoint_eval.local_pods.launch import requests
from checkpoint_eval.local_pods.quantities import quantity
from checkpoint_eval.local_pods.selectors import Object
from checkpoint_eval.local_pods.statuses import TERMINAL

UNCOUNTED = ("memory", "ephemeral-storage")  # limited at run time, or not at all; never a reason to wait


def admitted(pod: Object) -> bool:
    """Whether the pod has its place on the node."""
    return "nodeName" in pod["spec"]


def used(pods: Iterable[Object]) -> dict[str, Decimal]:
    """What the admitted pods that have not ended ask for."""
    total: dict[str, Decimal] = {}
    for pod in pods:
        if admitted(pod) and pod["status"]["phase"] not in TERMINAL:
            add(total, pod_requests(pod))
    return total


def lacking(pod: Object, taken: Mapping[str, Decimal], capacity: Mapping[str, Decimal]) -> list[str]:
    """Names of the resources that do not suffice for this pod beside what is taken."""
    none = Decimal(0)
    wanted = {name: amount for name, amount in pod_requests(pod).items() if amount and name not in UNCOUNTED}
    return sorted(name for name, n in wanted.items() if taken.get(name, none) + n > capacity.get(name, none))


def pod_requests(pod: Object) -> dict[str, Decimal]:
    """As the scheduler counts: the container's request, or an init container's where that is larger."""
    total: dict[str, Decimal] = {}
    for container in pod["spec"]["containers"]:
        add(total, {name: quantity(amount) for name, amount in requests(container).items()})
    for container in pod["spec"].get("initContainers") or []:
        for name, amount in requests(container).items():
            total[name] = max(total.get(name, Decimal(0)), quantity(amount))
    return total


def add(total: dict[str, Decimal], more: Mapping[str, Decimal]) -> None:
    """Sum in place."""
    for name, amount in more.items():
        total[name] = total.get(name, Decimal(0)) + amount
