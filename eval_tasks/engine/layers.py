"""A model's layers in, the same layers with fewer passes over memory out: norms, rotary attention, residuals.

On CPU, products aside, a layer is passes over memory. Each replacement computes what transformers' class of that name
does, in the layout (rows, heads, width) that products leave; a class that is not named here keeps transformers' own
forward. Knows no tokens; how rows attend is handed through (`attention.Attend`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from eval_tasks.engine.attention import Attend, Form, refuse_mask
from eval_tasks.engine.linears import GatedFeedForward, Product

if TYPE_CHECKING:
    import torch

RMS_NORMS: Mapping[str, bool] = {
    "LlamaRMSNorm": False,
    "MistralRMSNorm": False,
    "MixtralRMSNorm": False,
    "Qwen2RMSNorm": False,
    "Qwen2MoeRMSNorm": False,
    "Qwen3RMSNorm": False,
    "Qwen3MoeRMSNorm": False,
    "GemmaRMSNorm": True,
    "Gemma2RMSNorm": True,
    "Gemma3RMSNorm": True,
}
"""Classes whose forward is x / sqrt(mean(x^2) + eps) * weight, by whether the weight is an offset from 1."""


def _no_window(_module: Any) -> None:
    return None


def _own_window(module: Any) -> int | None:
    window: int | None = module.sliding_window
    return window


def _shared_window(module: Any) -> int | None:
    return getattr(module.config, "sliding_window", None)


ATTENTIONS: Mapping[str, Callable[[Any], int | None]] = {
    "LlamaAttention": _no_window,
    "GemmaAttention": _no_window,
    "MistralAttention": _shared_window,
    "MixtralAttention": _shared_window,
    "Qwen2Attention": _own_window,
    "Qwen3Attention": _own_window,
    "Qwen3MoeAttention": _own_window,
    "Gemma2Attention": _own_window,
    "Gemma3Attention": _own_window,
}
"""Classes of rotary attention, by where each has its window."""

SOFTCAPPED = ("Gemma2Attention",)
"""Those of them that bound their scores."""

DECODER_LAYERS = (
    "LlamaDecoderLayer",
    "MistralDecoderLayer",
    "Qwen2DecoderLayer",
    "Qwen3DecoderLayer",
    "GemmaDecoderLayer",
)
"""Layers x + attention(norm(x)), then x + feed_forward(norm(x)), with nothing between a product and its residual."""


def eps_of(norm: Any) -> float:
    """What an RMS norm adds to the mean of squares."""
    return float(norm.eps if hasattr(norm, "eps") else norm.variance_epsilon)


def pin_layers(base: torch.nn.Module) -> None:
    """Replace the forwards of the layers below `base` that are named here; its linear layers are products already."""
    for module in base.modules():
        name = type(module).__name__
        if name in RMS_NORMS:
            _set_forward(module, _norm(module, unit_offset=RMS_NORMS[name]))
        elif name in ATTENTIONS:
            _set_forward(module, RotaryAttention(module, _form(module)))
        elif name in DECODER_LAYERS and isinstance(getattr(module.mlp, "forward", None), GatedFeedForward):
            _set_forward(module, _decoder_layer(module))


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary embedding of x (rows, heads, width) by cos and sin (rows, 1, width), whose halves are equal."""
    half = x.shape[-1] // 2
    y = x * cos
    y[..., :half].addcmul_(x[..., half:], sin[..., :half], value=-1)
    y[..., half:].addcmul_(x[..., :half], sin[..., half:])
    return y


class RotaryAttention:
    """The forward of one attention layer whose positions are rotary, of a packed list of rows."""

    def __init__(self, module: Any, form: Form) -> None:
        self._module = module
        self.form = form

    def __call__(
        self,
        hidden_states: torch.Tensor,
        position_embeddings: tuple[torch.Tensor, torch.Tensor],
        attention_mask: torch.Tensor | None = None,
        *,
        attend: Attend,
        residual: torch.Tensor | None = None,
        **_: object,
    ) -> tuple[torch.Tensor, None]:
        """hidden_states (1, rows, width) -> attention's output (1, rows, width), plus `residual` when one is given."""
        refuse_mask(attention_mask)
        module = self._module
        x = hidden_states[0]
        cos, sin = (table[0, :, None] for table in position_embeddings)
        q, k, v = (
            project.forward(x).view(x.shape[0], -1, module.head_dim)
            for project in (module.q_proj, module.k_proj, module.v_proj)
        )
        if hasattr(module, "q_norm"):
            q, k = module.q_norm.forward(q), module.k_norm.forward(k)
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        attended = attend(module.layer_idx, q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1), self.form)
        project: Product = module.o_proj.forward
        return project.plus(attended.reshape(1, x.shape[0], -1), residual), None


def _form(module: Any) -> Form:
    name = type(module).__name__
    softcap = module.attn_logit_softcapping if name in SOFTCAPPED else None
    return Form(module.scaling, ATTENTIONS[name](module), softcap)


def _norm(module: Any, *, unit_offset: bool) -> Callable[[torch.Tensor], torch.Tensor]:
    """An RMS norm in four passes; the sum of squares is float32, and is rounded where transformers rounds."""
    import torch

    eps = eps_of(module)
    weight = module.weight.detach()
    n = weight.shape[0]
    factor = 1 + weight.float() if unit_offset else weight

    def forward(x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        norm: torch.Tensor = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
        y = wide * norm.square_().div_(n).add_(eps).rsqrt_()
        if unit_offset:
            return y.mul_(factor).to(x.dtype)
        return y.to(x.dtype).mul_(factor)

    return forward


def _decoder_layer(module: Any) -> Callable[..., torch.Tensor]:
    """The two residuals are added where the products before them leave their sums."""

    def forward(
        hidden_states: torch.Tensor,
        *,
        position_embeddings: tuple[torch.Tensor, torch.Tensor],
        attend: Attend,
        attention_mask: torch.Tensor | None = None,
        **_: object,
    ) -> torch.Tensor:
        attended, _none = module.self_attn.forward(
            module.input_layernorm.forward(hidden_states),
            position_embeddings,
            attention_mask,
            attend=attend,
            residual=hidden_states,
        )
        feed_forward: GatedFeedForward = module.mlp.forward
        return feed_forward(module.post_attention_layernorm.forward(attended), attended)

    return forward


def _set_forward(module: torch.nn.Module, forward: Callable[..., Any]) -> None:
    object.__setattr__(module, "forward", forward)
