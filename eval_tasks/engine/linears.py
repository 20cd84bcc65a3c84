"""A loaded model in, the same model with every linear layer on one matrix multiplication out.

On CPU all go through oneDNN in every dtype: its results for a row do not depend on how many rows there are (two or
more) nor on one or two threads. MKL, torch's choice for fp32, splits the sum over K at some shapes with two threads
(64 against 256 rows of a 1536 -> 576 layer differ), and has other kernels below 16 rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

MIN_ROWS = 4

Multiply = Callable[["torch.Tensor"], "torch.Tensor"]


def multiply_by(weight: torch.Tensor, bias: torch.Tensor | None) -> Multiply:
    """x -> x @ weight.T + bias, for x of any leading shape with at least MIN_ROWS rows. `weight` is (out, in)."""
    import torch

    if weight.device.type != "cpu":
        return lambda x: torch.nn.functional.linear(x, weight, bias)
    linear = torch.ops.mkldnn._linear_pointwise
    dtype = weight.dtype
    wide = dtype == torch.bfloat16 and is_widened("bfloat16")
    if wide:
        weight, bias = weight.float(), None if bias is None else bias.float()
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, None)

    def multiply(x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = linear(x, packed, bias, "none", [], "")
        return y

    return (lambda x: multiply(x.float()).to(dtype)) if wide else multiply


def is_widened(dtype: str) -> bool:
    """Whether linear layers of this dtype are held and multiplied in float32 on this machine's CPU.

    Without matrix units bfloat16 products run at half the speed of float32 ones. The inputs are the same numbers, the
    sums are float32 either way, and the result is rounded to bfloat16.
    """
    import torch

    return dtype == "bfloat16" and not torch.cpu._is_amx_tile_supported()


def pin_linears(base: torch.nn.Module) -> list[int]:
    """Replace the forward of every Linear and Conv1D below `base`; the widths (in and out features) that occur.

    Their original weights are dropped: the packed copy is the only one.
    """
    import torch
    from transformers.pytorch_utils import Conv1D

    widths: set[int] = set()
    for module in base.modules():
        if isinstance(module, torch.nn.Linear):
            weight = module.weight.detach()
        elif isinstance(module, Conv1D):
            weight = module.weight.detach().t().contiguous()
        else:
            continue
        widths.update(weight.shape)
        bias = None if module.bias is None else module.bias.detach()
        object.__setattr__(module, "forward", multiply_by(weight, bias))
        if weight.device.type == "cpu":
            module.weight = torch.nn.Parameter(weight.new_empty(0), requires_grad=False)
    return sorted(widths)
