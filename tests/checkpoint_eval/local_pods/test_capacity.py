"""Room on the node: sums of requests, the larger of init and main, what is never counted."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from checkpoint_eval.local_pods.capacity import lacking, pod_requests, used


def pod(cpu: str, phase: str = "Running", *, admitted: bool = True, init_cpu: str | None = None) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"resources": {"requests": {"cpu": cpu, "memory": "900Gi"}}}]}
    if init_cpu is not None:
        spec["initContainers"] = [{"resources": {"limits": {"cpu": init_cpu}}}]
    if admitted:
        spec["nodeName"] = "local"
    return {"spec": spec, "status": {"phase": phase}}


def test_only_admitted_pods_that_have_not_ended_take_room() -> None:
    pods = [pod("1"), pod("500m"), pod("4", "Succeeded"), pod("8", "Failed"), pod("2", "Pending", admitted=False)]
    assert used(pods)["cpu"] == Decimal("1.5")


def test_an_init_container_counts_where_it_asks_for_more() -> None:
    assert pod_requests(pod("1", init_cpu="3"))["cpu"] == 3
    assert pod_requests(pod("1", init_cpu="500m"))["cpu"] == 1


def test_memory_is_no_reason_to_wait_and_cpu_is() -> None:
    capacity = {"cpu": Decimal(2)}
    assert lacking(pod("1"), {"cpu": Decimal(1)}, capacity) == []
    assert lacking(pod("1100m"), {"cpu": Decimal(1)}, capacity) == ["cpu"]
