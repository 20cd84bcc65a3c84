"""What an environment is told apart by, and how a difference is told."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import eval_tasks
from eval_tasks import environment
from eval_tasks.environment import describe_environment, explain_difference, harness_version
from eval_tasks.records import EngineConfig, Environment, from_json, to_json


def test_the_same_machine_has_the_same_fingerprint_whatever_runs_in_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import torch

    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    first = describe_environment(EngineConfig())
    torch.set_num_threads(2)
    try:
        monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        second = describe_environment(EngineConfig())
    finally:
        torch.set_num_threads(1)
    assert first == second
    assert from_json(Environment, to_json(first)).env_fingerprint == first.env_fingerprint


def test_every_component_has_a_value() -> None:
    components = describe_environment(EngineConfig()).components
    assert {"cpu", "cpu_capability", "torch", "transformers", "tokenizers", "numpy", "triton", "onednn"} <= set(
        components
    )
    assert {"kernel_library", "attention", "threads", "machine", "python", "blas"} <= set(components)
    assert all(isinstance(value, str) and value for value in components.values())
    assert components["cpu_matrix_units"] in ("yes", "no")
    assert components["blas"].startswith("MKL ")
    assert "gpu" not in components
    assert components["kernel_library"].startswith("libtorch_cpu.so ")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"threads": 2}, ["threads: '1' -> '2'"]),
        ({"dtype": "bfloat16"}, ["dtype: 'float32' -> 'bfloat16'"]),
    ],
)
def test_a_difference_is_named(change: dict[str, object], named: list[str]) -> None:
    a, b = describe_environment(EngineConfig()), describe_environment(EngineConfig(**change))
    assert explain_difference(a, b) == named
    assert a.env_fingerprint != b.env_fingerprint
    assert explain_difference(a, a) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("ONEDNN_MAX_CPU_ISA", "AVX2"), ("ATEN_CPU_CAPABILITY", "avx2"), ("MKL_CBWR", "COMPATIBLE"), ("MKL_DYNAMIC", "1")],
)
def test_a_variable_that_chooses_kernels_is_a_component(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(name, raising=False)
    plain = describe_environment(EngineConfig())
    monkeypatch.setenv(name, value)
    assert explain_difference(plain, describe_environment(EngineConfig())) == [f"variable {name}: absent -> {value!r}"]


def test_the_instruction_set_that_aten_was_given_is_the_one_recorded() -> None:
    """A process of its own: ATen reads the variable once."""
    code = (
        "from eval_tasks.environment import describe_environment; from eval_tasks.records import EngineConfig;"
        "print(describe_environment(EngineConfig()).components['cpu_capability'])"
    )
    places = {**os.environ, "ATEN_CPU_CAPABILITY": "default"}
    root = Path(eval_tasks.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=places, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() in ("DEFAULT", "NO AVX")


def test_the_driver_is_found_where_containers_show_it(tmp_path: Path) -> None:
    assert environment._driver(tmp_path) == "unknown"
    module, driver = tmp_path / "sys/module/nvidia/version", tmp_path / "proc/driver/nvidia/version"
    for path, text in (
        (module, "550.90.07\n"),
        (driver, "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build\n"),
    ):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    assert environment._driver(tmp_path) == "570.124.06"
    driver.unlink()
    assert environment._driver(tmp_path) == "550.90.07"


def test_cublas_is_found_by_either_name_of_its_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = {"nvidia-cublas-cu12": "12.8.4.1"}
    monkeypatch.setattr(environment, "_package_version", lambda name: installed.get(name, "none"))
    assert environment._cublas("12.8") == "12.8.4.1"
    installed.clear()
    assert environment._cublas("13.0") == "none"
    installed["nvidia-cublas"] = "13.1.0.3"
    assert environment._cublas("13.0") == "13.1.0.3"


def test_the_harness_version_follows_the_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = harness_version()
    assert before.startswith(f"{eval_tasks.__version__}+")
    shutil.copytree(Path(eval_tasks.__file__).parent, tmp_path / "eval_tasks")
    monkeypatch.setattr(eval_tasks, "__file__", str(tmp_path / "eval_tasks/__init__.py"))
    try:
        assert _fresh_version() == before
        (tmp_path / "eval_tasks/cli/__init__.py").write_text("# no part of the instrument")
        assert _fresh_version() == before
        versions = {before}
        for name in ("engine/head.py", "run/worker.py", "checkpoint/config.py", "tokenization.py"):
            source = tmp_path / "eval_tasks" / name
            source.write_text(source.read_text() + "\n")
            versions.add(_fresh_version())
        assert len(versions) == 5
    finally:
        environment.harness_version.cache_clear()


def _fresh_version() -> str:
    environment.harness_version.cache_clear()
    return harness_version()
