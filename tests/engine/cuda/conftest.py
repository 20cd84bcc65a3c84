"""Kernels run on the GPU where there is one, else in Triton's interpreter; skipped visibly where Triton is missing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os

import pytest

_INTERPRETER_THAT_RUNS = (3, 8)  # older ones fail with numpy 2.4


def _where() -> tuple[str, str]:
    """The device, and why there is none."""
    if importlib.util.find_spec("triton") is None:
        return "", "triton is not installed: the CUDA kernels were not run, not even in its interpreter"
    import torch

    if torch.cuda.is_available():
        return "cuda", ""
    version = importlib.metadata.version("triton")
    if tuple(map(int, version.split(".")[:2])) < _INTERPRETER_THAT_RUNS:
        return "", f"no GPU, and the interpreter of Triton {version} does not run with this numpy; 3.8 does"
    # Read when Triton is imported first, which transformers may do in any test.
    os.environ["TRITON_INTERPRET"] = "1"
    return "cpu", ""


_DEVICE, _PROBLEM = _where()


@pytest.fixture(scope="session")
def device() -> str:
    """Where the kernels run."""
    if _PROBLEM:
        pytest.skip(_PROBLEM)
    return _DEVICE
