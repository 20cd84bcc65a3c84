"""A loaded model in, the same model with every linear layer on one matrix multiplication out.

On CPU all go through oneDNN in every dtype: its float32 results for a row do not depend on how many rows there are (two
or more) nor on one or two threads. MKL, torch's choice for fp32, splits the sum over K at some shapes with two threads
(64 against 256 rows of a 1536 -> 576 layer differ), and has other kernels below 16 rows. On matrix units (AMX) oneDNN
splits a bfloat16 sum over K by how many rows there are: there every product has BLOCK_ROWS of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from eval_tasks.engine import cuda

if TYPE_CHECKING:
    import torch

MIN_ROWS = 4
# Measured on AMX: a row of so many has the same bits at any place and beside any others, on one thread and on two.
BLOCK_ROWS = 64
# Two threads share an element-wise operation in halves, and each half is done 64 elements at a time with another
# instruction for the rest: a multiple of 128 elements leaves no rest at any row.
ELEMENTS = 128


class Activation(NamedTuple):
    """An element-wise function as oneDNN names it, computed where a product leaves its sums."""

    name: str
    algorithm: str = ""


# By the class names of transformers' activation modules.
ACTIVATIONS = {
    "SiLUActivation": Activation("swish"),
    "SiLU": Activation("swish"),
    "GELUTanh": Activation("gelu", "tanh"),
    "GELUActivation": Activation("gelu", "none"),
}
_NONE = Activation("none")


def is_widened(dtype: str) -> bool:
    """Whether products of this dtype are held and computed in float32 on this machine's CPU.

    Without matrix units bfloat16 products run at half the speed of float32 ones. The inputs are the same numbers, the
    sums are float32 either way, and the result is rounded to bfloat16.
    """
    import torch

    return dtype == "bfloat16" and not torch.cpu._is_amx_tile_supported()


class Product:
    """x -> x @ weight.T + bias on CPU, x of any leading shape with at least MIN_ROWS rows. `weight` is (out, in)."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        import torch

        self.dtype = weight.dtype
        wide = self.dtype == torch.bfloat16 and is_widened("bfloat16")
        self.inner_dtype = torch.float32 if wide else self.dtype
        self._bias = None if bias is None else bias.to(self.inner_dtype)
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight.to(self.inner_dtype), None)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """The product, in the model's dtype."""
        return self.inner(x).to(self.dtype)

    def inner(self, x: torch.Tensor, activation: Activation = _NONE) -> torch.Tensor:
        """The product through `activation`, in `inner_dtype`."""
        import torch

        def product(rows: torch.Tensor) -> torch.Tensor:
            y: torch.Tensor = torch.ops.mkldnn._linear_pointwise(
                rows, self._weight, self._bias, activation.name, [], activation.algorithm
            )
            return y

        return self._in_blocks(product, x)

    def times(self, x: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
        """The product times `factor`, element by element, in `inner_dtype`."""
        return self._with(x, factor, "mul")

    def plus(self, x: torch.Tensor, term: torch.Tensor | None) -> torch.Tensor:
        """The product, plus `term` when there is one, in the model's dtype, rounded where two operations round."""
        import torch

        if term is None:
            return self(x)
        if self.dtype == torch.float32 and type(self) is Product:
            return self._with(x, term, "add")
        return term + self(x)

    def _with(self, x: torch.Tensor, other: torch.Tensor, operation: str) -> torch.Tensor:
        import torch

        def product(rows: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
            y: torch.Tensor = torch.ops.mkldnn._linear_pointwise.binary(
                rows, others, self._weight, self._bias, operation
            )
            return y

        return self._in_blocks(product, x, other)

    def _in_blocks(self, product: Callable[..., torch.Tensor], x: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        """`product` of all rows at once, or of BLOCK_ROWS at a time, the last ones filled up with zeros."""
        import torch

        x = x.to(self.inner_dtype)
        if self.inner_dtype == torch.float32:
            return product(x, *others)
        n_rows = x.shape[:-1].numel()
        filler = -n_rows % BLOCK_ROWS
        padded = [torch.nn.functional.pad(t.reshape(n_rows, -1), (0, 0, 0, filler)) for t in (x, *others)]
        starts = range(0, n_rows, BLOCK_ROWS)
        y = torch.cat([product(*(t[start : start + BLOCK_ROWS] for t in padded)) for start in starts])
        return y[:n_rows].view(*x.shape[:-1], -1)


class GatedFeedForward:
    """x -> down(act(gate(x)) * up(x)), plus `residual` when one is given: three products with all else inside them."""

    def __init__(self, gate: Product, up: Product, down: Product, activation: Activation) -> None:
        self._gate = gate
        self._up = up
        self._down = down
        self._activation = activation

    def __call__(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> torch.Tensor:
        """The feed-forward of x (..., width), in the model's dtype."""
        x = x.to(self._gate.inner_dtype)
        return self._down.plus(self._up.times(x, self._gate.inner(x, self._activation)), residual)


Multiply = Callable[["torch.Tensor"], "torch.Tensor"]


def multiply_by(weight: torch.Tensor, bias: torch.Tensor | None, *, wide: bool = False) -> Multiply:
    """x -> x @ weight.T + bias, for x of any leading shape with at least MIN_ROWS rows. `weight` is (out, in).

    `wide`: the result in float32, from inputs in the weight's dtype.
    """
    if cuda.uses_kernels(weight.device):
        from eval_tasks.engine.cuda.products import TiledProduct

        return TiledProduct(weight, bias, wide=wide)
    if wide:
        weight, bias = weight.float(), None if bias is None else bias.float()
    return Product(weight, bias)


def pin_linears(base: torch.nn.Module, share: Callable[[Any], Multiply] | None = None) -> list[int]:
    """Replace the forward of every Linear and Conv1D below `base`; the widths (in and out features) that occur.

    Their original weights are dropped: the packed copy is the only one. A gated feed-forward on CPU becomes three
    products with its activation and its gate inside them. On a GPU products are `cuda.products`. `share`: what makes a
    layer's product where the layer is one rank's share.
    """
    widths: set[int] = set()
    for module, weight in _linear_modules(base):
        widths.update(weight.shape)
        bias = None if module.bias is None else module.bias.detach()
        object.__setattr__(module, "forward", share(module) if share else multiply_by(weight, bias))
        module.weight = nothing(weight)
    for module in base.modules():
        _fuse(module)
    return sorted(widths)


def _linear_modules(base: torch.nn.Module) -> Iterator[tuple[Any, torch.Tensor]]:
    """Every module that is a linear layer, and its weight as (out, in)."""
    import torch
    from transformers.pytorch_utils import Conv1D

    for module in base.modules():
        if isinstance(module, torch.nn.Linear):
            yield module, module.weight.detach()
        elif isinstance(module, Conv1D):
            yield module, module.weight.detach().t().contiguous()


def nothing(weight: torch.Tensor) -> torch.nn.Parameter:
    """A parameter without elements, in place of one that was packed."""
    import torch

    return torch.nn.Parameter(weight.new_empty(0), requires_grad=False)


def _fuse(module: Any) -> None:
    """Give a feed-forward down(act(gate(x)) * up(x)) one forward of three products."""
    layers = [getattr(module, name, None) for name in ("gate_proj", "up_proj", "down_proj")]
    products = [f for layer in layers if isinstance(f := getattr(layer, "forward", None), Product)]
    activation = ACTIVATIONS.get(type(getattr(module, "act_fn", None)).__name__)
    if activation is None or len(products) < len(layers):
        return
    gate, up, down = products
    object.__setattr__(module, "forward", GatedFeedForward(gate, up, down, activation))
