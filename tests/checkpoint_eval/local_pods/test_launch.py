"""A pod's environment is built up, never inherited; what cannot be given is named."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from checkpoint_eval.local_pods.admission import admit
from checkpoint_eval.local_pods.launch import MissingReferenceError, launch_spec


def launched(tmp_path: Path, pass_env: tuple[str, ...] = (), **container: Any) -> dict[str, Any]:
    volumes = container.pop("volumes", [])
    base = {"name": "base", "image": "x", "command": ["python", "-m", "eval_tasks"], **container}
    pod = admit({"metadata": {"name": "a"}, "spec": {"containers": [base], "volumes": volumes}}, "default")
    return dict(launch_spec(pod, tmp_path, pass_env)["containers"][0])


def test_the_servers_environment_stays_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")
    monkeypatch.setenv("PASSED_ONE", "1")
    env = launched(tmp_path, ("PASSED_*",))["env"]
    assert "SECRET_TOKEN" not in env
    assert env["PASSED_ONE"] == "1"


def test_python_is_the_servers_interpreter(tmp_path: Path) -> None:
    assert launched(tmp_path)["argv"] == [sys.executable, "-m", "eval_tasks"]


def test_fields_and_references_are_filled_in(tmp_path: Path) -> None:
    spec = launched(
        tmp_path,
        env=[
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "BOTH", "value": "$(POD)@$(NODE) $$(POD) $(NOPE)"},
        ],
        args=["--owner", "$(BOTH)"],
    )
    assert spec["env"]["BOTH"] == "a@local $(POD) $(NOPE)"
    assert spec["argv"][-1].startswith("a@local")


def test_a_value_below_an_empty_directory_is_the_real_place(tmp_path: Path) -> None:
    spec = launched(
        tmp_path,
        volumes=[{"name": "scratch", "emptyDir": {}}],
        volumeMounts=[{"name": "scratch", "mountPath": "/scratch"}],
        env=[{"name": "HOME", "value": "/scratch/home"}, {"name": "OTHER", "value": "/scratchy"}],
    )
    assert spec["env"]["HOME"] == str(tmp_path / "volumes" / "scratch" / "home")
    assert spec["env"]["OTHER"] == "/scratchy"
    assert (tmp_path / "volumes" / "scratch").is_dir()


@pytest.mark.parametrize(
    ("container", "missing"),
    [
        ({"envFrom": [{"secretRef": {"name": "s"}}]}, 'secret "s" not found'),
        ({"envFrom": [{"configMapRef": {"name": "c"}}]}, 'configmap "c" not found'),
        ({"env": [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}, 'secret "s" not found'),
    ],
)
def test_a_required_reference_is_missing_by_name(tmp_path: Path, container: dict[str, Any], missing: str) -> None:
    with pytest.raises(MissingReferenceError, match=missing):
        launched(tmp_path, **container)


def test_an_optional_reference_is_skipped(tmp_path: Path) -> None:
    spec = launched(tmp_path, envFrom=[{"secretRef": {"name": "s", "optional": True}}])
    assert spec["env"]["LANG"] == "C.UTF-8"


def test_a_pod_that_asks_for_no_device_sees_none(tmp_path: Path) -> None:
    assert launched(tmp_path)["env"]["CUDA_VISIBLE_DEVICES"] == ""
    asking = launched(tmp_path, resources={"limits": {"nvidia.com/gpu": "1"}})
    assert "CUDA_VISIBLE_DEVICES" not in asking["env"]
