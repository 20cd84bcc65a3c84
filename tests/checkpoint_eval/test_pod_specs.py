"""Whole pods, as Airflow sends them, against files that are kept: what changes in one is seen in review.

`REWRITE_GOLDEN=1 pytest tests/checkpoint_eval/test_pod_specs.py` writes them anew; look at the difference.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from checkpoint_eval import pod_operator
from checkpoint_eval.pods import shard_pod_kwargs, shard_pods
from eval_tasks.errors import UserError
from eval_tasks.settings import EnvironmentSpec, Limits, Settings

GOLDEN = Path(__file__).parent / "golden"
RUN_ID = "0123456789abcdef" * 4
REMOTE = {"store_uri": "s3://bucket/store", "config": None}

CASES: dict[str, dict[str, Any]] = {
    "cpu": {"environment": {}, "settings": REMOTE},
    "secret": {
        "environment": {"ephemeral_storage": "20Gi", "ephemeral_storage_limit": "40Gi"},
        "settings": REMOTE | {"catalog_url": "postgresql+psycopg://eval:s3cret@db/catalog"},
    },
    "gpu": {
        "environment": {
            "image": f"registry.example/worker@sha256:{'0' * 64}",
            "gpus": 2,
            "device": "cuda",
            "dtype": "bfloat16",
            "cpu": "8",
            "memory": "96Gi",
            "shm": "16Gi",
            "gpu_node": {"product": "NVIDIA-H200", "driver": "580.82.07", "memory_mib": 140000, "mig_strategy": "none"},
            "avoid_nodes": ["gpu-9"],
            "node_selector": {"pool": "evaluation"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "checkpoint_cache": {"host_path": "/var/cache/checkpoint-eval"},
            "queue": "evaluation",
        },
        "settings": REMOTE,
        "limits": {"priority_classes": {"health": "checkpoint-eval-health"}},
        "suspects": ["gpu-2", "gpu-1"],
    },
    "volume": {
        "environment": {"checkpoint_cache": {"storage_class": "fast", "size": "500Gi"}},
        "settings": REMOTE,
    },
}

_COMMON = ("random_name_suffix", "termination_grace_period", "termination_message_policy")


def kwargs_of(name: str) -> dict[str, Any]:
    case = CASES[name]
    (kwargs,) = shard_pod_kwargs(
        plan_uri="s3://bucket/store/plan",
        run_id=RUN_ID,
        shards=[3],
        group="logprob",
        tier="health",
        environment=EnvironmentSpec(name=name, **case["environment"]),
        limits=Limits(**case.get("limits", {})),
        settings=Settings(home=Path("/home/eval"), **case["settings"]),
        suspects=case.get("suspects", ()),
    )
    return kwargs


def sent(kwargs: dict[str, Any], *, try_number: int = 1) -> dict[str, Any]:
    """The pod that the real operator builds of one mapping, as JSON."""
    from kubernetes.client import ApiClient

    common = {name: value for name, value in shard_pods(task_id="run_shard").kwargs.items() if name in _COMMON}
    operator = pod_operator.ShardPodOperator(task_id="run_shard", **common, **kwargs)
    operator.__dict__["hook"] = SimpleNamespace(is_in_cluster=True)  # no cluster is asked
    operator.name = "logprob-01234567-3-0"
    context: Any = {
        "ti": SimpleNamespace(
            try_number=try_number, dag_id="d", task_id="run_shard", run_id="r", map_index=0, dag_version_id=None
        ),
        "dag": SimpleNamespace(is_subdag=False, dag_id="d"),
        "run_id": "r",
    }
    operator._get_ti_pod_labels = lambda *_a, **_k: {}  # type: ignore[method-assign,assignment]
    return dict(ApiClient().sanitize_for_serialization(operator.build_pod_request_obj(context)))


@pytest.mark.parametrize("name", CASES)
def test_the_pod_that_is_sent_is_the_one_that_was_reviewed(name: str, airflow_home: Path) -> None:
    pod = sent(kwargs_of(name))
    # Its release changes with every release of Airflow's provider.
    for label in ("airflow_version", "airflow_kpo_in_cluster", "kubernetes_executor"):
        pod["metadata"]["labels"].pop(label, None)
    path = GOLDEN / f"{name}.yaml"
    if os.environ.get("REWRITE_GOLDEN"):
        path.write_text(yaml.safe_dump(pod, sort_keys=True), "utf-8")
    assert pod == yaml.safe_load(path.read_text("utf-8")), f"see {path}; REWRITE_GOLDEN=1 writes it anew"


def test_every_kept_pod_is_tested() -> None:
    assert {path.stem for path in GOLDEN.glob("*.yaml")} == CASES.keys()


def test_no_password_stands_in_any_pod() -> None:
    assert not [path.name for path in GOLDEN.glob("*.yaml") if "s3cret" in path.read_text("utf-8")]


def test_a_pod_whose_catalog_has_a_password_does_not_start_without_its_secret() -> None:
    optional = {}
    for name in CASES:
        (container,) = kwargs_of(name)["pod_template_dict"]["spec"]["containers"]
        (secret,) = [entry["secretRef"] for entry in container["envFrom"] if "secretRef" in entry]
        optional[name] = secret["optional"]
    assert optional == {name: name != "secret" for name in CASES}


def test_the_second_try_keeps_away_from_nodes_that_were_another_environment(
    airflow_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def strayed(_store: object, run_id: str) -> list[str]:
        asked.append(run_id)
        return ["gpu-7"]

    monkeypatch.setattr(pod_operator, "open_catalog", object)
    monkeypatch.setattr(pod_operator, "strayed_nodes", strayed)
    assert not sent(kwargs_of("cpu"))["spec"].get("affinity") and not asked
    (term,) = sent(kwargs_of("cpu"), try_number=2)["spec"]["affinity"]["nodeAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    assert asked == [RUN_ID]
    assert term["preference"]["matchFields"][0]["values"] == ["gpu-7"]


def test_a_try_goes_on_when_the_ledger_knows_nothing_of_the_run(
    airflow_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(*_: object) -> list[str]:
        raise UserError("no run")

    monkeypatch.setattr(pod_operator, "open_catalog", object)
    monkeypatch.setattr(pod_operator, "strayed_nodes", unknown)
    assert not sent(kwargs_of("cpu"), try_number=2)["spec"].get("affinity")
