"""Rows on a GPU in, RMS norms and log-softmax out, each row summed in one order by one program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eval_tasks.engine.cuda import aligned
from eval_tasks.engine.layers import RMS_NORMS, eps_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

_SOFTMAX_BLOCK = 4096
_WARPS = 8


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float, *, unit_offset: bool = False) -> torch.Tensor:
    """x / sqrt(mean(x^2) + eps) * weight over the last dimension; weight counts from 1 with `unit_offset`."""
    from eval_tasks.engine.cuda.row_kernels import rms_norm_kernel

    width = weight.shape[0]
    rows = aligned(x)
    y = rows.new_empty(rows.shape)
    if rows.numel():
        kernel: Any = rms_norm_kernel
        kernel[(rows.numel() // width,)](
            rows,
            weight,
            y,
            eps=eps,
            width=width,
            block=_power_of_two(width),
            unit_offset=unit_offset,
            num_warps=_WARPS if width >= _SOFTMAX_BLOCK // 2 else 1,
        )
    return y


def log_softmax(logits: torch.Tensor) -> torch.Tensor:
    """Log-softmax of each row of float32 `logits` (rows, width)."""
    from eval_tasks.engine.cuda.row_kernels import log_softmax_kernel

    n_rows, width = logits.shape
    logits = aligned(logits)
    y = logits.new_empty(logits.shape)
    if n_rows:
        kernel: Any = log_softmax_kernel
        kernel[(n_rows,)](logits, y, width=width, block=min(_SOFTMAX_BLOCK, _power_of_two(width)), num_warps=_WARPS)
    return y


def pin_norms(base: torch.nn.Module) -> int:
    """Give every RMS norm below `base` the forward in one order; how many there were.

    Raises RuntimeError for a class that is named as one and not known: torch's own sum would follow the row count.
    """
    n = 0
    for module in base.modules():
        name = type(module).__name__
        if not name.endswith("RMSNorm"):
            continue
        if name not in RMS_NORMS:
            raise RuntimeError(f"no fixed-order norm for {name}; known: {', '.join(RMS_NORMS)}")
        object.__setattr__(module, "forward", _norm_of(module, unit_offset=RMS_NORMS[name]))
        n += 1
    return n


def _norm_of(module: Any, *, unit_offset: bool) -> Callable[[torch.Tensor], torch.Tensor]:
    weight = aligned(module.weight.detach())
    eps = eps_of(module)
    return lambda x: rms_norm(x, weight, eps, unit_offset=unit_offset)


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()
