# mypy: disable-error-code="no-untyped-def,misc,untyped-decorator"
"""Triton kernels of which each program does one row: RMS norm and log-softmax. Imported where a GPU is used only.

Row counts are no part of what is compiled, and addresses are multiples of 16 bytes: a kernel is the same for every
forward.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(
    x_ptr,
    weight_ptr,
    y_ptr,
    eps: tl.constexpr,
    width: tl.constexpr,
    block: tl.constexpr,
    unit_offset: tl.constexpr,
):
    """y = x / sqrt(mean(x^2) + eps) * weight, or * (1 + weight) before rounding with `unit_offset`."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, block)
    inside = column < width
    x = tl.load(x_ptr + row * width + column, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + column, mask=inside, other=0.0)
    normed = x * (1.0 / tl.sqrt(tl.sum(x * x, axis=0) / width + eps))
    if unit_offset:
        y = normed * (1.0 + weight.to(tl.float32))
    else:
        # As the models do: rounded to the model's dtype, then times the weight in that dtype.
        y = normed.to(y_ptr.dtype.element_ty).to(tl.float32) * weight.to(tl.float32)
    tl.store(y_ptr + row * width + column, y.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def log_softmax_kernel(x_ptr, y_ptr, width: tl.constexpr, block: tl.constexpr):
    """y = x - max(x) - log(sum(exp(x - max(x)))), in float32, `block` elements at a time from the first on."""
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * width
    y_ptr += row * width
    column = tl.arange(0, block)
    largest = tl.full((block,), float("-inf"), tl.float32)
    for start in range(0, width, block):
        x = tl.load(x_ptr + start + column, mask=start + column < width, other=float("-inf"))
        largest = tl.maximum(largest, x)
    top = tl.max(largest, axis=0)
    sums = tl.zeros((block,), tl.float32)
    for start in range(0, width, block):
        x = tl.load(x_ptr + start + column, mask=start + column < width, other=float("-inf"))
        sums += tl.exp(x - top)
    total = tl.log(tl.sum(sums, axis=0))
    for start in range(0, width, block):
        inside = start + column < width
        x = tl.load(x_ptr + start + column, mask=inside, other=0.0)
        tl.store(y_ptr + start + column, x - top - total, mask=inside)
