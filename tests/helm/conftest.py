"""The helm binary, and the chart as it renders: shared by the tests of the chart and of its profiles."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

REPOSITORY = Path(__file__).parents[2]
CHART = REPOSITORY / "helm/checkpoint-eval"
NAMESPACE = "checkpoint-eval"

Objects = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="session")
def helm() -> str:
    """The binary: HELM, .cache/bin/helm (`.ci/fetch-helm`) or PATH; skipped, visibly, where none is."""
    cached = REPOSITORY / ".cache/bin/helm"
    found = os.environ.get("HELM") or (str(cached) if cached.exists() else shutil.which("helm"))
    if not found:
        pytest.skip("no helm: run .ci/fetch-helm, or set HELM to the binary")
    return found


@pytest.fixture(scope="session")
def kubernetes_validate() -> str:
    """The binary of `.ci/fetch-linters`, or of PATH."""
    cached = REPOSITORY / ".cache/linters/bin/kubernetes-validate"
    found = str(cached) if cached.exists() else shutil.which("kubernetes-validate")
    if not found:
        pytest.skip("no kubernetes-validate: run .ci/fetch-linters")
    return found


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def rendered(helm: str, *files: Path) -> str:
    """The chart with these files of values, as YAML documents."""
    values = [argument for file in files for argument in ("--values", str(file))]
    done = run(helm, "template", "release", str(CHART), "--namespace", NAMESPACE, *values)
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects_of(text: str) -> Objects:
    """(kind, name) -> object; a name stands once."""
    found = [one for one in yaml.safe_load_all(text) if one]
    objects = {(one["kind"], one["metadata"]["name"]): one for one in found}
    assert len(objects) == len(found)
    return objects
