"""Which nodes a pod may go to, and which it keeps away from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from checkpoint_eval.placement import affinity, avoiding, blocked_nodes, strayed_nodes
from eval_tasks.settings import EnvironmentSpec
from eval_tasks.store import Store
from tests.planned import planned, register, write_checkpoint

NOW = "2026-01-01T00:00:00+00:00"


def node_affinity(**values: Any) -> dict[str, Any]:
    return affinity(EnvironmentSpec(name="e", **values))["affinity"]["nodeAffinity"]


def test_any_node_will_do_where_nothing_is_said() -> None:
    assert affinity(EnvironmentSpec(name="e")) == {}


def test_the_gpus_labels_and_the_nodes_to_avoid_are_one_term_that_must_hold() -> None:
    gpu = {"product": "NVIDIA-H200", "driver": "580", "memory_mib": 140_000, "mig_strategy": "none"}
    found = node_affinity(gpus=1, gpu_node=gpu, avoid_nodes=("bad-1",))
    (term,) = found["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [(e["key"], e["operator"], e["values"]) for e in term["matchExpressions"]] == [
        ("nvidia.com/gpu.product", "In", ["NVIDIA-H200"]),
        ("nvidia.com/cuda.driver-version.major", "In", ["580"]),
        ("nvidia.com/gpu.memory", "Gt", ["139999"]),
        ("nvidia.com/mig.strategy", "In", ["none"]),
    ]
    assert term["matchFields"] == [{"key": "metadata.name", "operator": "NotIn", "values": ["bad-1"]}]


def test_a_whole_driver_version_is_matched_whole() -> None:
    found = node_affinity(gpus=1, gpu_node={"driver": "580.82.07"})
    (term,) = found["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {
        "matchExpressions": [{"key": "nvidia.com/cuda.driver-version.full", "operator": "In", "values": ["580.82.07"]}]
    }


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"gpus": 1, "gpu_node": {"driver": "580.82"}}, "neither a major version"),
        ({"gpus": 1, "gpu_node": {}}, "says nothing"),
        ({"gpu_node": {"product": "NVIDIA-H200"}}, "asks for none"),
        ({"gpus": 1, "gpu_node": {"product": "NVIDIA H200"}}, "pattern"),
        ({"avoid_nodes": ["Node_1"]}, "pattern"),
        ({"checkpoint_cache": {}}, "one of 'host_path'"),
        ({"checkpoint_cache": {"host_path": "/a", "size": "1Gi"}}, "one of 'host_path'"),
        ({"checkpoint_cache": {"host_path": "/a", "storage_class": "fast"}}, "give its 'size'"),
        ({"checkpoint_cache": {"host_path": "/a/../etc"}}, "climbs out"),
        ({"checkpoint_cache": {"host_path": "relative"}}, "pattern"),
        ({"shm": "a lot"}, "pattern"),
        ({"queue": "Team A"}, "pattern"),
    ],
)
def test_what_no_cluster_would_take_is_refused_early(values: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        EnvironmentSpec(name="e", **values)


def test_suspect_nodes_are_kept_away_from_only_while_others_have_room() -> None:
    found = affinity(EnvironmentSpec(name="e"), ["b", "a", "b"])["affinity"]["nodeAffinity"]
    assert found.keys() == {"preferredDuringSchedulingIgnoredDuringExecution"}
    (preferred,) = found["preferredDuringSchedulingIgnoredDuringExecution"]
    assert [field["values"] for field in preferred["preference"]["matchFields"]] == [["a"], ["b"]]


def test_a_template_is_kept_away_from_further_nodes_and_left_as_it_was() -> None:
    template = {"spec": {"containers": [], **affinity(EnvironmentSpec(name="e", avoid_nodes=("x",)), ["a"])}}
    more = avoiding(template, ["b"])
    before, after = (t["spec"]["affinity"]["nodeAffinity"] for t in (template, more))
    name = "preferredDuringSchedulingIgnoredDuringExecution"
    assert (len(before[name]), len(after[name])) == (1, 2)
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    assert after[required] == before[required]
    assert avoiding(template, []) is template
    assert avoiding({"spec": {}}, ["b"])["spec"]["affinity"]["nodeAffinity"].keys() == {name}


def test_nodes_of_open_blocks_are_suspect_until_they_are_explained(store: Store) -> None:
    assert blocked_nodes(store) == []
    block = store.catalog.open_block("f" * 32, "rows changed", NOW, nodes=("gpu-2", "gpu-1"))
    store.catalog.open_block("e" * 32, "rows changed", NOW, nodes=("gpu-2", ""))
    assert blocked_nodes(store) == ["gpu-1", "gpu-2"]
    store.catalog.explain_block(block, "ada", "a device was changed", NOW)
    assert blocked_nodes(store) == ["gpu-2"]


def test_a_node_where_a_shard_met_another_environment_is_known(store: Store, tmp_path: Path) -> None:
    register(store, tmp_path / "benchmarks")
    run_id = planned(store, write_checkpoint(tmp_path / "step-1")).run_id
    store.catalog.pin_environment(run_id, "f" * 32)
    store.catalog.record_shard(run_id, 0, status="running", env_fingerprint="f" * 32, node="alike")
    assert strayed_nodes(store, run_id) == []
    store.catalog.record_shard(run_id, 0, status="failed", env_fingerprint="e" * 32, node="other")
    assert strayed_nodes(store, run_id) == ["other"]
