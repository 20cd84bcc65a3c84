"""Kernels run on the GPU where there is one, else in Triton's interpreter; skipped visibly where Triton is missing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os

import pytest


@pytest.fixture(scope="session")
def device() -> str:
    """Where the kernels run. The interpreter is chosen before the first kernel is imported."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("triton is not installed: the CUDA kernels were not run, not even in its interpreter")
    import torch

    if torch.cuda.is_available():
        return "cuda"
    version = importlib.metadata.version("triton")
    if int(version.split(".")[1]) < 8 and version.startswith("3."):  # its interpreter fails with numpy 2.4
        pytest.skip(f"Triton {version} has an interpreter that this numpy breaks, and there is no GPU: 3.8 runs here")
    os.environ["TRITON_INTERPRET"] = "1"
    return "cpu"
