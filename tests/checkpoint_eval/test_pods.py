"""The worker pod as data, and the real operator against a live local pod API through `dag.test()`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint_eval.pods import pod_template, shard_pod_kwargs, shard_pods, worker_env
from eval_tasks.settings import EnvironmentSpec, Limits, Settings

if TYPE_CHECKING:
    pass  # pragma: no cover

RUN_ID = "0123456789abcdef" * 4


def mappings(tmp_path: Path, shards: list[int], **environment: Any) -> list[dict[str, Any]]:
    return shard_pod_kwargs(
        plan_uri="blob:plan",
        run_id=RUN_ID,
        shards=shards,
        group="logprob",
        tier="health",
        environment=EnvironmentSpec(name="local", **environment),
        limits=Limits(pod_deadline_seconds=100),
        settings=Settings(home=tmp_path),
    )


def env(settings: Settings) -> dict[str, Any]:
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in worker_env(settings)}


def test_a_shard_becomes_one_json_mapping_with_labels_that_kubernetes_takes(tmp_path: Path) -> None:
    first, second = mappings(tmp_path, [0, 7])
    assert json.loads(json.dumps(first)) == first
    assert second["arguments"] == ["run-shard", "--plan", "blob:plan", "--shard", "7"]
    assert first["name"] != second["name"]
    assert second["labels"]["checkpoint-eval/shard"] == "7"
    assert all(len(value) <= 63 for value in second["labels"].values())


def test_a_pod_may_do_little(tmp_path: Path) -> None:
    spec = pod_template(EnvironmentSpec(name="x"), Limits(pod_deadline_seconds=9), Settings(home=tmp_path))["spec"]
    container = spec["containers"][0]
    assert spec["automountServiceAccountToken"] is False
    assert spec["activeDeadlineSeconds"] == 9
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    mounts = [("scratch", "/scratch"), ("shm", "/dev/shm")]
    assert container["volumeMounts"] == [{"name": name, "mountPath": path} for name, path in mounts]


def test_the_priority_class_is_the_tiers(tmp_path: Path) -> None:
    limits = Limits(priority_classes={"health": "urgent"})
    for tier, expected in (("health", "urgent"), ("selection", None)):
        template = pod_template(EnvironmentSpec(name="x"), limits, Settings(home=tmp_path), tier=tier)
        assert template["spec"].get("priorityClassName") == expected
    with pytest.raises(ValueError, match="nightly"):
        Limits(priority_classes={"nightly": "urgent"})  # type: ignore[dict-item]


def test_accelerators_and_their_place_come_from_the_environment(tmp_path: Path) -> None:
    toleration = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    environment = EnvironmentSpec(
        name="gpu", gpus=2, cpu="4", memory="8Gi", node_selector={"class": "h200"}, tolerations=(toleration,)
    )
    spec = pod_template(environment, Limits(), Settings(home=tmp_path))["spec"]
    assert spec["nodeSelector"] == {"class": "h200"}
    assert spec["tolerations"] == [toleration]
    assert spec["containers"][0]["resources"] == {
        "requests": {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "1Gi", "nvidia.com/gpu": "2"},
        "limits": {"memory": "8Gi", "nvidia.com/gpu": "2"},
    }


def test_no_password_goes_into_a_pod_spec(tmp_path: Path) -> None:
    remote = Settings(home=tmp_path, store_uri="s3://bucket/evals", catalog_url="postgresql://eval:s3cret@db/catalog")
    assert "CHECKPOINT_EVAL_CATALOG_URL" not in env(remote)
    assert "s3cret" not in json.dumps(pod_template(EnvironmentSpec(name="x"), Limits(), remote))
    assert env(remote)["CHECKPOINT_EVAL_HOME"] == "/scratch/home"


def test_a_local_store_is_shared_with_the_pod(tmp_path: Path) -> None:
    variables = env(Settings(home=tmp_path))
    assert variables["CHECKPOINT_EVAL_HOME"] == str(tmp_path)
    assert variables["CHECKPOINT_EVAL_STORE_URI"] == str(tmp_path / "store")
    assert variables["CHECKPOINT_EVAL_CATALOG_URL"] == f"sqlite:///{tmp_path / 'catalog.db'}"
    assert variables["POD_NAME"] == {"fieldRef": {"fieldPath": "metadata.name"}}


def test_only_errors_that_a_person_must_act_on_are_final() -> None:
    from checkpoint_eval.pod_operator import FINAL_EXIT_CODES
    from eval_tasks import errors
    from eval_tasks.cli.main import exit_code

    final = (
        errors.UserError,
        errors.NotComparableError,
        errors.DataError,
        errors.CheckpointGoneError,
        errors.BlockedError,
    )
    assert {exit_code(kind("x")) for kind in final} == FINAL_EXIT_CODES
    assert exit_code(errors.InfraError("x")) not in FINAL_EXIT_CODES


def test_a_dag_of_pods_serializes_alike_each_time(airflow_home: Path) -> None:
    from airflow.sdk import DAG
    from airflow.serialization.serialized_objects import DagSerialization

    def serialized() -> str:
        with DAG("serialized_pods") as dag:
            shard_pods(task_id="run_shard", pool="logprob_pods").expand_kwargs([{"name": "a"}])
        return json.dumps(DagSerialization.serialize_dag(dag), sort_keys=True, default=str)

    assert serialized() == serialized()


def test_importing_the_factory_imports_neither_airflow_nor_kubernetes() -> None:
    script = (
        "import sys, checkpoint_eval.pods; "
        "sys.exit(','.join({m.split('.')[0] for m in sys.modules} & {'airflow', 'kubernetes', 'torch', 'pandas'}))"
    )
    repository = Path(__file__).parents[2]
    env = os.environ | {"PYTHONPATH": f"{repository / 'plugins'}{os.pathsep}{repository}"}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
