"""The machine and its software in, an `Environment` record out; two of them in, what differs out.

A component is anything that may change a bit of a result. Knows no engine object and loads no model: it can be
described before a checkpoint is fetched. The version of this harness itself is no part of it (`harness_version`):
a release whose rows differ must meet the old baseline.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import eval_tasks
from eval_tasks.digests import digest_parts, digest_stream
from eval_tasks.records import EngineConfig, Environment
from eval_tasks.records.engine import MOCK_MARK

if TYPE_CHECKING:
    from types import ModuleType

_PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "triton", "numpy")
_HARNESS = (
    "engine",
    "endpoint",
    "prompts",
    "plan",
    "scoring",
    "datasets",
    "registry",
    "tokenization",
    "reasoning",
    "run",
    "checkpoint/config",  # the context length, and so where prompts are cut
)

# Variables by which BLAS, oneDNN and CUDA choose other kernels than they would by themselves.
_KERNEL_VARIABLES = (
    "ATEN_CPU_CAPABILITY",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_FORCE_PTX_JIT",
    "DISABLE_ADDMM_CUDA_LT",
    "DNNL_CPU_ISA_HINTS",
    "DNNL_DEFAULT_FPMATH_MODE",
    "DNNL_MAX_CPU_ISA",
    "MKL_CBWR",
    "MKL_DEBUG_CPU_TYPE",
    "MKL_DYNAMIC",
    "MKL_ENABLE_INSTRUCTIONS",
    "NCCL_ALGO",
    "NCCL_PROTO",
    "NVIDIA_TF32_OVERRIDE",
    "ONEDNN_CPU_ISA_HINTS",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "ONEDNN_MAX_CPU_ISA",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_BLAS_PREFER_CUBLASLT",
    "TORCH_LINEAR_FLATTEN_3D",
    "TORCH_MKLDNN_MATMUL_MIN_DIM",
    "TRITON_INTERPRET",
    "USE_HUB_KERNELS",
)
# The engine itself sets this one before CUDA starts; an environment is the same before and after.
_SET_BY_ENGINE = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}


def describe_environment(config: EngineConfig) -> Environment:
    """What a shard with `config` runs on here, component by component, each a short text ('' is never a value).

    Nothing of this machine moves a mock engine's answers: it has one environment wherever it runs, and needs no torch.
    """
    if config.is_mock:
        return Environment(components={"engine": MOCK_MARK})
    import torch

    components = {
        "python": platform.python_version(),
        "python_implementation": sys.implementation.name,
        "machine": platform.machine(),
        "system": platform.system(),
        "libc": " ".join(platform.libc_ver()).strip() or "unknown",
        "device": config.device,
        "dtype": config.dtype,
        "attention": _attention(config),
        "threads": str(config.threads),
        "tensor_parallel": str(config.tensor_parallel),
        "kernel_library": _kernel_library_digest(torch),
        **{name: _package_version(name) for name in _PACKAGES},
        **_build(torch),
        **(_cpu(torch) if config.device == "cpu" else _gpu(torch)),
    }
    for name in _KERNEL_VARIABLES:
        value = os.environ.get(name)
        if value and value != _SET_BY_ENGINE.get(name):
            components[f"variable {name}"] = value
    return Environment(components=dict(sorted(components.items())))


def explain_difference(a: Environment, b: Environment) -> list[str]:
    """One sentence per component that differs, by name; empty when the fingerprints are the same."""
    sentences = []
    for name in sorted({*a.components, *b.components}):
        left, right = a.components.get(name), b.components.get(name)
        if left != right:
            sentences.append(f"{name}: {_shown(left)} -> {_shown(right)}")
    return sentences


@functools.cache
def harness_version() -> str:
    """Release and a digest of the sources that can change a row (`_HARNESS`): ``0.1.0+1a2b3c4d5e6f``."""
    root = Path(eval_tasks.__file__).parent
    sources = sorted(
        path.relative_to(root).as_posix()
        for name in _HARNESS
        for path in (root / f"{name}.py", *(root / name).rglob("*.py"))
        if path.is_file()
    )
    parts = [part for source in sources for part in (source, _file_digest(root / source))]
    return f"{eval_tasks.__version__}+{digest_parts(parts)[:12]}"


def _attention(config: EngineConfig) -> str:
    if config.attention == "reference":
        return "reference: eager, of transformers"
    return f"{config.attention} of {config.tile} over " + ("bmm" if config.device == "cpu" else "triton")


def _package_version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def _build(torch: ModuleType) -> dict[str, str]:
    """Libraries that torch was built with, from its own account of itself."""
    account: str = torch.__config__.show()
    commit = re.search(r"COMMIT_SHA=(\w+)", account)
    return {
        "blas": _found(r"Math Kernel Library Version (\S+)", account, "MKL ")
        or _found(r"BLAS_INFO=(\w+)", account)
        or "unknown",
        "onednn": _found(r"MKL-DNN v(\S+)", account) or "none",
        "openmp": _found(r"OpenMP (\d+)", account) or "none",
        "torch_commit": commit.group(1)[:12] if commit else "unknown",
    }


def _found(pattern: str, text: str, prefix: str = "") -> str:
    match = re.search(pattern, text)
    return prefix + match.group(1) if match else ""


def _cpu(torch: ModuleType) -> dict[str, str]:
    """The processor: its model decides which kernels MKL and oneDNN choose, beyond the instruction set."""
    return {
        "cpu": _cpu_model(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        # Whether the system lets this process use the matrix units, which the processor's list of features leaves open.
        "cpu_matrix_units": "yes" if torch.cpu._is_amx_tile_supported() else "no",
        "cpu_features": _cpu_features(),
    }


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if not info.is_file():
        return platform.processor() or "unknown"
    fields = dict(re.findall(r"^([\w ]+?)\s*:[ \t]*(.*)$", info.read_text().partition("\n\n")[0], re.MULTILINE))
    name = fields.get("model name") or fields.get("CPU implementer") or "unknown"
    numbers = [fields[key] for key in ("cpu family", "model", "CPU part", "stepping") if key in fields]
    return f"{name} ({' '.join(numbers)})" if numbers else name


def _cpu_features() -> str:
    """The extensions that matrix kernels are chosen by, of those that this processor has."""
    info = Path("/proc/cpuinfo")
    flags = re.search(r"^(?:flags|Features)\s*:(.*)$", info.read_text() if info.is_file() else "", re.MULTILINE)
    chosen_by = re.compile(r"avx|fma|amx|f16c|sve|asimd|bf16|i8mm|vnni")
    return " ".join(sorted(flag for flag in flags.group(1).split() if chosen_by.search(flag))) if flags else "unknown"


def _gpu(torch: ModuleType) -> dict[str, str]:
    """Device, driver and libraries of the first GPU; only names when torch sees none."""
    if not torch.cuda.is_available():
        return {"gpu": "none"}
    properties = torch.cuda.get_device_properties(0)
    account: Any = torch
    return {
        "gpu": properties.name,
        "gpu_multiprocessors": str(properties.multi_processor_count),
        "gpu_capability": f"{properties.major}.{properties.minor}",
        "gpu_driver": _driver(Path("/")),
        "cuda": account.version.cuda or "none",
        "cudnn": str(account.backends.cudnn.version() or "none"),
        "cublas": _cublas(account.version.cuda or ""),
        "nccl": ".".join(map(str, account.cuda.nccl.version())) if account.distributed.is_nccl_available() else "none",
    }


def _driver(root: Path) -> str:
    """Version of NVIDIA's kernel module, by the file of the driver itself or by that of any module."""
    for path, pattern in (
        (root / "proc/driver/nvidia/version", r"Module\s+(?:for \S+\s+)?(\d[\d.]+)"),
        (root / "sys/module/nvidia/version", r"(\d[\d.]+)"),
    ):
        found = _found(pattern, path.read_text("utf-8")) if path.is_file() else ""
        if found:
            return found
    return "unknown"


def _cublas(cuda: str) -> str:
    """Its wheel's version; before CUDA 13 the wheel's name says for which CUDA it is."""
    versions = (_package_version(name) for name in ("nvidia-cublas", f"nvidia-cublas-cu{cuda.partition('.')[0]}"))
    return next((version for version in versions if version != "none"), "none")


def _kernel_library_digest(torch: ModuleType) -> str:
    """blake3 of torch's main shared library, which holds its kernels and, in the CPU build, MKL and oneDNN."""
    folder = Path(str(torch.__file__)).parent / "lib"
    name = "libtorch_cuda.so" if (folder / "libtorch_cuda.so").is_file() else "libtorch_cpu.so"
    path = folder / name
    if not path.is_file():
        return "unknown"
    return f"{name} {_file_digest(path)[:32]}"


def _file_digest(path: Path) -> str:
    status = path.stat()
    return _digest_of_version(path, status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=256)
def _digest_of_version(path: Path, size: int, mtime_ns: int) -> str:  # noqa: ARG001 - the key of the cache
    with path.open("rb") as stream:
        return digest_stream(stream)[0]


def _shown(value: str | None) -> str:
    return "absent" if value is None else repr(value)
