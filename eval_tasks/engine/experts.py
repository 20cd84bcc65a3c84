"""Mixture-of-experts layers in, the same layers with rows that know nothing of one another out.

Which experts a token goes to, and what they say of it, follows from its own row: the router is one float32 product, an
expert's rows are gathered and filled up to a row multiple, and a token's experts are added in float32 in the order of
their numbers. How many tokens an expert has been given by others cannot matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from eval_tasks.engine.linears import ACTIVATIONS, ELEMENTS, MIN_ROWS, Product, multiply_by, nothing

if TYPE_CHECKING:
    import torch

# transformers' classes: softmax over all experts, the best k, their weights made to sum to one (or not: the config's).
ROUTERS = ("MixtralTopKRouter", "Qwen3MoeTopKRouter")
EXPERTS = ("MixtralExperts", "Qwen3MoeExperts")

Gate = Callable[["torch.Tensor"], "torch.Tensor"]


def pin_experts(base: Any) -> list[int]:
    """Replace the forward of every router and every group of experts below `base`; the widths that occur.

    Their original weights are dropped. Raises RuntimeError for a class that is named as one and not known.
    """
    widths: set[int] = set()
    for module in base.modules():
        name = type(module).__name__
        if name in ROUTERS:
            object.__setattr__(module, "forward", _Router(module))
        elif name in EXPERTS:
            experts = _Experts(module)
            widths.update((experts.width, module.hidden_dim))
            object.__setattr__(module, "forward", experts)
        elif name.endswith(("Router", "Experts")):
            raise RuntimeError(f"no fixed-order experts for {name}; known: {', '.join((*ROUTERS, *EXPERTS))}")
    return sorted(widths)


def has_experts(base: Any) -> bool:
    """Whether some rows take another way than others."""
    return any(type(module).__name__ in EXPERTS for module in base.modules())


class _Router:
    """Rows in; their (logits, weights, expert numbers), the experts of a row in ascending order, in float32."""

    def __init__(self, module: Any) -> None:
        self._multiply = multiply_by(module.weight.detach(), None, wide=True)
        self._top_k = int(module.top_k)
        self._normalised = bool(getattr(module, "norm_topk_prob", True))
        module.weight = nothing(module.weight)

    def __call__(self, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        logits = self._multiply(hidden.reshape(-1, hidden.shape[-1]).float())
        # Not torch's topk: which of two equal experts it takes may follow the number of rows.
        ordered, numbers = logits.softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
        weights, chosen = ordered[:, : self._top_k], numbers[:, : self._top_k]
        if self._normalised:
            # Column by column: torch's own sum of a row may take another order at another number of rows.
            total = weights[:, 0]
            for k in range(1, self._top_k):
                total = total + weights[:, k]
            weights = weights / total[:, None]
        chosen, order = chosen.sort(dim=-1)
        return logits, weights.gather(1, order), chosen


class _Experts:
    """Rows, their experts' numbers and weights in; the weighted sums of what the experts say out."""

    def __init__(self, module: Any) -> None:
        gate_up, down = module.gate_up_proj.detach(), module.down_proj.detach()
        self.width = int(down.shape[2])
        self._multiple = math.lcm(MIN_ROWS, ELEMENTS // math.gcd(ELEMENTS, self.width))
        self._experts = [
            _gated(
                multiply_by(both[: self.width].contiguous(), None),
                multiply_by(both[self.width :].contiguous(), None),
                multiply_by(out.contiguous(), None),
                module.act_fn,
            )
            for both, out in zip(gate_up, down, strict=True)
        ]
        module.gate_up_proj, module.down_proj = nothing(gate_up), nothing(down)

    def __call__(self, hidden: torch.Tensor, chosen: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        said = hidden.new_empty((*chosen.shape, hidden.shape[1])).float()
        for number in sorted(set(chosen.flatten().tolist())):
            rows, places = (chosen == number).nonzero(as_tuple=True)
            filler = -len(rows) % self._multiple
            filled = rows if not filler else _filled(rows, filler)
            said[rows, places] = self._experts[number](hidden[filled])[: len(rows)].float()
        total = said[:, 0] * weights[:, :1]
        for k in range(1, chosen.shape[1]):
            total = total + said[:, k] * weights[:, k : k + 1]
        return total.to(hidden.dtype)


def _filled(rows: torch.Tensor, n: int) -> torch.Tensor:
    import torch

    return torch.cat((rows, rows[-1:].expand(n)))


def _gated(gate: Any, up: Any, down: Any, act_fn: Any) -> Gate:
    """down(act(gate(x)) * up(x)), with the activation and the product inside of oneDNN's where it has them."""
    activation = ACTIVATIONS.get(type(act_fn).__name__)
    if activation is not None and all(isinstance(layer, Product) for layer in (gate, up, down)):

        def fused(x: torch.Tensor) -> torch.Tensor:
            x = x.to(gate.inner_dtype)
            result: torch.Tensor = down.inner(up.times(x, gate.inner(x, activation)))
            return result

        return fused

    def plain(x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = down(act_fn(gate(x)) * up(x))
        return result

    return plain
