"""Rows and weights on a GPU in, matrix products out, in tiles whose sizes follow the weight and the dtype alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from eval_tasks.engine.cuda import aligned, interpreted

if TYPE_CHECKING:
    import torch


class Tiles(NamedTuple):
    """Sizes of one program's work, and how it is laid out on the GPU. None of them may follow the number of rows."""

    rows: int
    out: int
    inner: int
    warps: int
    stages: int


# From this width on there are enough tiles to fill a GPU with wide ones; below, narrow ones read a weight sooner.
_WIDE = 8192


def tiles_of(n_out: int, itemsize: int) -> Tiles:
    """The tiles for a weight with `n_out` outputs of `itemsize` bytes an element.

    float32 products run outside the matrix units (TF32 would round their inputs), so their tiles are smaller.
    """
    if itemsize == 4:
        return Tiles(rows=64, out=64, inner=32, warps=4, stages=3)
    return Tiles(rows=128, out=128 if n_out >= _WIDE else 64, inner=64, warps=8, stages=3)


class TiledProduct:
    """x -> x @ weight.T + bias for x of any leading shape. `weight` is (out, in).

    `wide`: the result in float32 as it was summed, else rounded to the weight's dtype.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None, *, wide: bool = False) -> None:
        import torch

        self._weight = aligned(weight)
        self._bias = None if bias is None else aligned(bias)
        self._tiles = tiles_of(weight.shape[0], weight.element_size())
        self._out_dtype = torch.float32 if wide else weight.dtype

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """The product. x is taken in the weight's dtype."""
        from eval_tasks.engine.cuda.product_kernel import product_kernel

        n_out, n_in = self._weight.shape
        rows = aligned(x.reshape(-1, n_in).to(self._weight.dtype))
        n_rows = rows.shape[0]
        y = rows.new_empty(n_rows, n_out, dtype=self._out_dtype)
        if n_rows:
            tiles = self._tiles
            kernel: Any = product_kernel
            kernel[(-(-n_rows // tiles.rows) * -(-n_out // tiles.out),)](
                rows,
                self._weight,
                self._weight if self._bias is None else self._bias,
                y,
                n_rows,
                n_in=n_in,
                n_out=n_out,
                has_bias=self._bias is not None,
                block_rows=tiles.rows,
                block_out=tiles.out,
                block_in=tiles.inner,
                widen=interpreted(),
                num_warps=tiles.warps,
                num_stages=tiles.stages,
            )
        return y.view(*x.shape[:-1], n_out)
