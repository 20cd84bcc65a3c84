"""What is taken, what is refused, and that a refusal names the field."""

from __future__ import annotations

from typing import Any

import pytest

from checkpoint_eval.local_pods.admission import admit
from checkpoint_eval.local_pods.errors import ApiError


def body(**changes: Any) -> dict[str, Any]:
    container = {"name": "base", "image": "x", "command": ["true"], **changes.pop("container", {})}
    metadata = {"name": "a", **changes.pop("metadata", {})}
    return {"metadata": metadata, "spec": {"containers": [container], **changes}}


def test_defaults_are_those_of_kubernetes() -> None:
    pod = admit(body(), "default")
    assert pod["spec"]["terminationGracePeriodSeconds"] == 30
    assert pod["spec"]["containers"][0]["terminationMessagePolicy"] == "File"
    assert pod["status"]["phase"] == "Pending"


def test_uids_sort_by_age() -> None:
    first = admit(body(), "default")["metadata"]["uid"]
    assert admit(body(), "default")["metadata"]["uid"][:8] >= first[:8]


def test_a_generated_name_begins_as_asked() -> None:
    pod = admit(body(metadata={"name": None, "generateName": "shard-"}), "default")
    assert pod["metadata"]["name"].startswith("shard-")
    assert len(pod["metadata"]["name"]) == len("shard-") + 5


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"metadata": {"name": "Shard_1"}}, "metadata.name"),
        ({"metadata": {"labels": {"run": "x" * 64}}}, "metadata.labels"),
        ({"metadata": {"labels": {"run": "a b"}}}, "metadata.labels"),
        ({"metadata": {"finalizers": ["x/y"]}}, "metadata.finalizers"),
        ({"restartPolicy": "Always"}, "spec.restartPolicy"),
        ({"activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds"),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, "spec.volumes[v]"),
        ({"metadata": {"name": "a\n"}}, "metadata.name"),
        ({"volumes": [{"name": "../../../etc", "emptyDir": {}}]}, "spec.volumes.name"),
        ({"volumes": [{"name": "/tmp/elsewhere", "emptyDir": {}}]}, "spec.volumes.name"),
        ({"initContainers": [{"name": "base", "image": "x", "command": ["true"]}]}, "spec.containers[base].name"),
        ({"container": {"name": "../base"}}, "spec.containers[../base].name"),
        ({"container": {"name": "base\n"}}, "spec.containers[base\n].name"),
        ({"container": {"args": ["--shard", 1]}}, "spec.containers[base].args"),
        ({"container": {"env": [{"value": "x"}]}}, "spec.containers[base].env.name"),
        (
            {"volumes": [{"name": "v", "emptyDir": {}}], "container": {"volumeMounts": [{"name": "v"}]}},
            "spec.containers[base].volumeMounts.mountPath",
        ),
        ({"container": {"image": ""}}, "spec.containers[base].image"),
        ({"container": {"command": None}}, "spec.containers[base].command"),
        (
            {"container": {"resources": {"limits": {"memory": "lots"}}}},
            "spec.containers[base].resources.limits[memory]",
        ),
        ({"container": {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}}, "spec.containers[base].volumeMounts"),
        (
            {"container": {"env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "spec.color"}}}]}},
            "spec.containers[base].env[N].valueFrom.fieldRef",
        ),
    ],
)
def test_a_refusal_names_the_field(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(ApiError) as refusal:
        admit(body(**changes), "default")
    assert refusal.value.code == 422
    assert [cause["field"] for cause in refusal.value.status()["details"]["causes"]] == [field]


def test_a_second_container_is_refused_by_name() -> None:
    two = body()
    two["spec"]["containers"].append({"name": "sidecar", "image": "x", "command": ["true"]})
    with pytest.raises(ApiError, match="'sidecar'"):
        admit(two, "default")


def test_another_namespace_than_the_url_is_refused() -> None:
    with pytest.raises(ApiError, match="does not match the namespace of the URL"):
        admit(body(metadata={"namespace": "other"}), "default")


@pytest.mark.parametrize(
    "changes",
    [
        {"containers": "base"},
        {"containers": ["base"]},
        {"volumes": {"name": "v"}},
        {"container": {"env": ["N=1"]}},
        {"container": {"resources": "2Gi"}},
        {"metadata": {"labels": ["a"]}},
    ],
)
def test_what_has_another_shape_is_a_bad_request(changes: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as refusal:
        admit(body(**changes), "default")
    assert refusal.value.code == 400
