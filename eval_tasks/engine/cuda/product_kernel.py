# mypy: disable-error-code="no-untyped-def,misc,untyped-decorator"
"""The Triton kernel of x @ weight.T + bias in tiles of one size. Imported where a GPU is used only.

One program sums one tile of the result over all of K, from first to last, in float32: no two programs share a sum.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n_rows"])
def product_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    y_ptr,
    n_rows,
    n_in: tl.constexpr,
    n_out: tl.constexpr,
    has_bias: tl.constexpr,
    block_rows: tl.constexpr,
    block_out: tl.constexpr,
    block_in: tl.constexpr,
    widen: tl.constexpr,
):
    """One tile. x is (n_rows, n_in), weight (n_out, n_in), y (n_rows, n_out), each contiguous.

    Programs that share a tile of the weight follow one another, eight tiles of rows at a time, so that it is read from
    the cache. `widen`: multiply in float32, for Triton's interpreter, which has no bfloat16 products.
    """
    row_tiles = tl.cdiv(n_rows, block_rows)
    out_tiles: tl.constexpr = (n_out + block_out - 1) // block_out
    program = tl.program_id(0)
    group = program // (8 * out_tiles)
    in_group = tl.minimum(row_tiles - group * 8, 8)
    row_tile = group * 8 + (program % (8 * out_tiles)) % in_group
    out_tile = (program % (8 * out_tiles)) // in_group

    row = (row_tile * block_rows + tl.arange(0, block_rows)).to(tl.int64)
    out = (out_tile * block_out + tl.arange(0, block_out)).to(tl.int64)
    step = tl.arange(0, block_in)
    real_row = row[:, None] < n_rows
    real_out = out < n_out
    x_ptrs = x_ptr + row[:, None] * n_in + step[None, :]
    weight_ptrs = weight_ptr + out[None, :] * n_in + step[:, None]
    sums = tl.zeros((block_rows, block_out), tl.float32)
    for start in range(0, n_in, block_in):
        inside = start + step < n_in
        x = tl.load(x_ptrs + start, mask=real_row & inside[None, :], other=0.0)
        weight = tl.load(weight_ptrs + start, mask=real_out[None, :] & inside[:, None], other=0.0)
        if widen:
            x = x.to(tl.float32)
            weight = weight.to(tl.float32)
        sums = tl.dot(x, weight, sums, input_precision="ieee")
    if has_bias:
        sums += tl.load(bias_ptr + out, mask=real_out, other=0.0).to(tl.float32)[None, :]
    y_ptrs = y_ptr + row[:, None] * n_out + out[None, :]
    tl.store(y_ptrs, sums.to(y_ptr.dtype.element_ty), mask=real_row & real_out[None, :])
