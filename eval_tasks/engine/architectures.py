"""A checkpoint's config.json in; nothing out when its architecture was verified here, a named refusal when not.

Verified means: the contract tests of `tests/engine` ran on this family, bit for bit. Knows no weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eval_tasks.errors import CheckpointError, did_you_mean

VERIFIED = ("gpt2", "llama", "mistral", "qwen2", "qwen3")

# Frequencies of these depend on the length of what is in the batch, or switch at a length: not a function of a token.
_LENGTH_DEPENDENT_ROPE = ("dynamic", "longrope")


def check_architecture(config: Mapping[str, Any], context: int) -> None:
    """Raise CheckpointError when the engine cannot promise its contract for this `config` at `context` positions.

    Reasons: ``unsupported_architecture``, ``sliding_window_unsupported``, ``rope_unsupported``,
    ``quantized_unsupported``.
    """
    model_type = str(config.get("model_type"))
    if model_type not in VERIFIED:
        raise CheckpointError(
            "unsupported_architecture",
            f"architecture {model_type!r} was not verified on this engine; {did_you_mean(model_type, VERIFIED)}",
        )
    if config.get("quantization_config"):
        raise CheckpointError(
            "quantized_unsupported",
            "config.json has a quantization_config; save the checkpoint in float32, bfloat16 or float16",
        )
    if config.get("add_cross_attention"):
        raise CheckpointError("unsupported_architecture", f"{model_type} with add_cross_attention is no language model")
    _check_windows(config, context)
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default")) if isinstance(rope, Mapping) else "default"
    if kind in _LENGTH_DEPENDENT_ROPE:
        raise CheckpointError(
            "rope_unsupported",
            f"rope type {kind!r} makes positions depend on the length of the batch; "
            "default, linear, llama3 and yarn do not",
        )


def _check_windows(config: Mapping[str, Any], context: int) -> None:
    """Refuse a sliding window that is shorter than the context: full attention would be another function."""
    window = config.get("sliding_window")
    if config.get("model_type") in ("qwen2", "qwen3") and not config.get("use_sliding_window", False):
        window = None
    if "sliding_attention" in (config.get("layer_types") or ()) and window is None:
        window = config.get("sliding_window") or 0
    if isinstance(window, int) and window < context:
        raise CheckpointError(
            "sliding_window_unsupported",
            f"sliding_window is {window} and the context is {context}; set max_context to {window} or less "
            "in the engine's configuration, where both are the same function",
        )
