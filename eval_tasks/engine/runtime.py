"""Engine configuration in, a torch process pinned to it out: threads, determinism, full fp32. Set, then checked.

Everything here is process-wide in torch, so an engine pins it again before each piece of work (`pin_threads`).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, cast

from eval_tasks.engine.cuda import check_cuda
from eval_tasks.errors import InfraError, UserError
from eval_tasks.records import EngineConfig, EngineTuning

if TYPE_CHECKING:
    import torch

TILE = 32
EXACT_THREADS = (1, 2)
EXACT_DEGREES = (1, 2)
_DENORMAL = 1e-40
_EXACT_VALUES = {
    "NVIDIA_TF32_OVERRIDE": "0",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "0",
    "DNNL_DEFAULT_FPMATH_MODE": "STRICT",
    "ONEDNN_DEFAULT_FPMATH_MODE": "STRICT",
}


def check_config(config: EngineConfig, tuning: EngineTuning) -> None:
    """Raise UserError for values with which the contract does not hold or was not shown."""
    if config.tile != TILE:
        raise UserError(f"tile is {config.tile}; only {TILE} was verified")
    if config.threads not in EXACT_THREADS:
        raise UserError(
            f"threads is {config.threads}; element-wise kernels change bits at other counts than 1 and 2: "
            "run more worker processes instead"
        )
    if config.decoding != "greedy":
        raise UserError(
            f"decoding is {config.decoding!r}; scored generation is greedy, but for a benchmark that declares in its "
            "file sampling: {temperature: ..., samples: ..., reason: ...}"
        )
    if config.attention not in ("tile", "reference") or config.accumulation != "float32":
        raise UserError(
            f"attention is {config.attention!r} with {config.accumulation!r} sums; "
            "known: 'tile' and 'reference' with 'float32'"
        )
    if config.attention == "reference" and config.prefix != "none":
        raise UserError(
            f"prefix is {config.prefix!r}; attention 'reference' reads every sequence whole: set it to 'none'"
        )
    _check_ranks(config)
    if not config.deterministic:
        raise UserError("deterministic is false; this engine has no other mode")
    if config.device == "cpu" and config.dtype == "float16":
        raise UserError("dtype float16 needs device cuda; on cpu use float32 or bfloat16")
    for name, value, least in (
        ("tokens_per_forward", tuning.tokens_per_forward, 1),
        ("decode_rows", tuning.decode_rows, 1),
        ("prefix_cache_mb", tuning.prefix_cache_mb, 0),
        ("graph_mb", tuning.graph_mb, 0),
    ):
        if value < least:
            raise UserError(f"{name} is {value}; give {least} or more")


def _check_ranks(config: EngineConfig) -> None:
    """Raise UserError for a tensor-parallel degree with which nothing was shown."""
    degree = config.tensor_parallel
    if degree not in EXACT_DEGREES:
        raise UserError(f"tensor_parallel is {degree}; 1 and 2 were verified")
    if degree > 1 and (config.device != "cpu" or config.attention != "tile"):
        raise UserError(
            f"tensor_parallel is {degree} with device {config.device!r} and attention {config.attention!r}; "
            "ranks were verified on 'cpu' with 'tile' only"
        )


def check_variables() -> None:
    """Raise UserError for a variable by which a library computes with fewer bits than the configuration records."""
    for name, exact in _EXACT_VALUES.items():
        value = os.environ.get(name, "")
        if value and value.upper() != exact:
            raise UserError(
                f"the environment has {name}={value}, by which float32 is no longer what is computed; unset it, or "
                "evaluate in bfloat16, which says so in its record"
            )


def prepare_torch(config: EngineConfig) -> torch.device:
    """Pin this process to `config` and say where to compute. Raises UserError or InfraError when it did not take."""
    check_variables()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    import torch

    torch.use_deterministic_algorithms(True)
    # Filling every fresh buffer costs a tenth of the time and hides nothing here: no kernel reads before it writes.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    # A library built with -ffast-math flushes denormals to zero in every process that loads it.
    torch.set_flush_denormal(False)
    pin_threads(config)
    mkldnn: Any = torch.backends.mkldnn
    mkldnn.deterministic = True
    if config.device == "cpu" and not (mkldnn.is_available() and mkldnn.enabled):
        raise InfraError("this torch has no oneDNN; the engine's CPU path stands on its matrix multiplication")
    if config.device == "cuda":
        if not torch.cuda.is_available():
            raise UserError("device is cuda and torch sees no GPU; set device to cpu or use an image with CUDA")
        check_cuda()
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_fp16_accumulation = False
    _check_settings(config)
    return torch.device(config.device)


def _check_settings(config: EngineConfig) -> None:
    """Raise InfraError naming what another library in this process has changed."""
    import torch

    cudnn, mkldnn = cast("Any", torch.backends.cudnn), cast("Any", torch.backends.mkldnn)
    held = {
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "float32 products in float32": torch.get_float32_matmul_precision() == "highest",
        "deterministic cuDNN without a benchmark": cudnn.deterministic and not cudnn.benchmark,
        "deterministic oneDNN": mkldnn.deterministic,
        "float32 as the default dtype": torch.get_default_dtype() == torch.float32,
        "no autocast": not torch.is_autocast_enabled(config.device),
        "denormal numbers": torch.tensor([_DENORMAL]).mul(1.0).item() != 0.0,
    }
    lost = [name for name, holds in held.items() if not holds]
    if lost:
        raise InfraError(
            f"torch did not keep {', '.join(lost)}: another library in this process changed its settings; "
            "run the engine in a process of its own"
        )


def pin_threads(config: EngineConfig) -> None:
    """Give torch exactly the configured number of threads. Raises InfraError when it does not take it."""
    import torch

    if torch.get_num_threads() != config.threads:
        torch.set_num_threads(config.threads)
    if torch.get_num_threads() != config.threads:
        raise InfraError(f"torch runs {torch.get_num_threads()} threads where {config.threads} were asked for")
