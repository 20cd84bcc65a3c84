"""A loaded model and a rank in, that rank's share of every layer out, by the plan that transformers declares for it.

A column-wise layer keeps some of its outputs (whole heads, parts of the feed-forward), a row-wise one some of its
inputs: its sums are then added over the ranks, in float32 and in rank order, so that a row's sum knows no other row.
The plan is read as data; transformers' own collectives would wrap the very forwards that the engine replaces. Knows no
processes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_tasks.engine.linears import Multiply, Product, multiply_by
from eval_tasks.errors import CheckpointError

if TYPE_CHECKING:
    import torch

Total = Callable[["torch.Tensor"], "torch.Tensor"]
"""This rank's part of a sum (float32) -> the sum over all ranks; every rank calls it as often, in the same order."""

_COLUMNS, _ROWS = "colwise", "rowwise"
# What is whole on every rank; the rest of the name is about gradients.
_WHOLE = "replicated"


def check_shares(folder: Path, degree: int) -> None:
    """Raise CheckpointError ``tensor_parallel_unsupported`` when `degree` ranks cannot share the model in `folder`."""
    if degree == 1:
        return
    import transformers

    read: Any = transformers.AutoConfig.from_pretrained
    settings = read(folder, trust_remote_code=False, local_files_only=True)
    kind = settings.model_type
    plan = _plan(settings)
    others = sorted({style for style in plan.values() if style not in (_COLUMNS, _ROWS) and _WHOLE not in style})
    if not plan or others:
        what = f"with {', '.join(others)}, which is not built here" if plan else "not there"
        raise CheckpointError(
            "tensor_parallel_unsupported",
            f"{folder}: transformers' plan for {kind!r} is {what}; set tensor_parallel to 1",
        )
    for name in ("num_attention_heads", "num_key_value_heads", "intermediate_size"):
        size = getattr(settings, name, None)
        if isinstance(size, int) and size % degree:
            raise CheckpointError(
                "tensor_parallel_unsupported",
                f"{folder}: {name} is {size}, which {degree} ranks cannot share; set tensor_parallel to 1",
            )


class SharedProduct(Product):
    """A row-wise layer's share: (in part) x -> the sum over all ranks, plus the bias."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None, total: Total) -> None:
        super().__init__(weight, None)
        self._added = None if bias is None else bias.float()
        self._total = total

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """The product, in the model's dtype."""
        y = self._total(self.inner(x).float())
        return (y if self._added is None else y + self._added).to(self.dtype)


def share_of(base: Any, rank: int, degree: int, total: Total) -> Callable[[Any], Multiply]:
    """Cut the linear layers of `base` down to a rank's share; what makes the product of a layer, for `pin_linears`."""
    plan = _plan(base.config)
    summed: set[int] = set()
    for name, module in base.named_modules():
        style = _style(plan, name)
        if style not in (_COLUMNS, _ROWS):
            continue
        axis = 0 if style == _COLUMNS else 1
        module.weight = _part(module.weight, axis, rank, degree)
        if style == _ROWS:
            summed.add(id(module))
        elif module.bias is not None:
            module.bias = _part(module.bias, 0, rank, degree)
    if not summed:
        raise RuntimeError(f"no layer of {type(base).__name__} is in its plan: {', '.join(plan)}")

    def product(module: torch.nn.Module) -> Multiply:
        weight: torch.Tensor = module.weight.detach()  # type: ignore[operator]
        bias: Any = None if module.bias is None else module.bias.detach()  # type: ignore[operator]
        return SharedProduct(weight, bias, total) if id(module) in summed else multiply_by(weight, bias)

    return product


def _plan(settings: Any) -> Mapping[str, str]:
    plan: Mapping[str, str] = getattr(settings, "base_model_tp_plan", None) or {}
    return plan


def _style(plan: Mapping[str, str], name: str) -> str | None:
    """What the plan says of a module; ``layers.*.mlp`` stands for every layer's."""
    return plan.get(re.sub(r"\.\d+(?=\.|$)", ".*", name))


def _part(parameter: torch.Tensor, axis: int, rank: int, degree: int) -> Any:
    import torch

    part = parameter.detach().chunk(degree, axis)[rank].contiguous().clone()
    return torch.nn.Parameter(part, requires_grad=False)
