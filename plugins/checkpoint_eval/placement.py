"""An environment -> the nodes that its pods may go to, as Kubernetes' node affinity; and the nodes that are in doubt.

What a person configured must hold: a pod waits for such a node. A node that is in doubt is kept away from while another
has room, and taken where there is none: a cluster of one node would otherwise wait for ever, and the night that has to
show that a node is sound again would never run there. Knows no pod and no Airflow.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from eval_tasks.settings import EnvironmentSpec

if TYPE_CHECKING:
    from eval_tasks.placement import GpuNode
    from eval_tasks.store import Store

# Labels of NVIDIA's GPU Feature Discovery (k8s-device-plugin 0.15 and later).
_PRODUCT = "nvidia.com/gpu.product"
_MEMORY_MIB = "nvidia.com/gpu.memory"
_DRIVER = "nvidia.com/cuda.driver-version."
_MIG = "nvidia.com/mig.strategy"

Requirement = dict[str, Any]


def affinity(environment: EnvironmentSpec, suspects: Collection[str] = ()) -> dict[str, Any]:
    """The pod specification's ``affinity`` and nothing else, or nothing where any node will do."""
    found: dict[str, Any] = {}
    expressions = _gpu_labels(environment.gpu_node) if environment.gpu_node else []
    fields = [_not_node(name) for name in environment.avoid_nodes]
    term = {k: v for k, v in (("matchExpressions", expressions), ("matchFields", fields)) if v}
    if term:
        found["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [term]}
    if suspects:
        found["preferredDuringSchedulingIgnoredDuringExecution"] = [_away_from(suspects)]
    return {"affinity": {"nodeAffinity": found}} if found else {}


def avoiding(template: dict[str, Any], nodes: Collection[str]) -> dict[str, Any]:
    """The pod, kept away from these nodes too while others have room. The template stays as it is."""
    if not nodes:
        return template
    spec = template["spec"]
    has = spec.get("affinity", {}).get("nodeAffinity", {})
    name = "preferredDuringSchedulingIgnoredDuringExecution"
    node_affinity = {**has, name: [*has.get(name, []), _away_from(nodes)]}
    return {**template, "spec": {**spec, "affinity": {**spec.get("affinity", {}), "nodeAffinity": node_affinity}}}


def blocked_nodes(store: Store) -> list[str]:
    """The nodes that took part in what an open block holds evaluation for."""
    return sorted({node for block in store.catalog.open_blocks() for node in block.nodes if node})


def strayed_nodes(store: Store, run_id: str) -> list[str]:
    """The nodes on which a shard of the run met another environment than the one that the run is pinned to."""
    pinned = store.catalog.run(run_id).env_fingerprint
    return sorted(
        {
            shard.node
            for shard in store.catalog.shards(run_id)
            if shard.node and shard.env_fingerprint is not None and shard.env_fingerprint != pinned
        }
    )


def _gpu_labels(gpu: GpuNode) -> list[Requirement]:
    part = "major" if gpu.driver is None or "." not in gpu.driver else "full"
    wanted = [
        (_PRODUCT, "In", gpu.product),
        (_DRIVER + part, "In", gpu.driver),
        (_MEMORY_MIB, "Gt", None if gpu.memory_mib is None else str(gpu.memory_mib - 1)),
        (_MIG, "In", gpu.mig_strategy),
    ]
    return [{"key": key, "operator": operator, "values": [value]} for key, operator, value in wanted if value]


def _away_from(nodes: Collection[str]) -> dict[str, Any]:
    return {"weight": 100, "preference": {"matchFields": [_not_node(name) for name in sorted(set(nodes))]}}


def _not_node(name: str) -> Requirement:
    # By the node's name, not by its label kubernetes.io/hostname, which may be another.
    return {"key": "metadata.name", "operator": "NotIn", "values": [name]}
