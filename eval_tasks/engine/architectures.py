"""A checkpoint's config.json in; nothing out when its architecture was verified here, a named refusal when not.

Verified means: the contract tests of `tests/engine` ran on this family, bit for bit. Knows no weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eval_tasks.errors import CheckpointError, did_you_mean

VERIFIED = ("gemma", "gemma2", "gemma3_text", "gpt2", "llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe")

# Frequencies of these depend on the length of what is in the batch, or switch at a length: not a function of a token.
_LENGTH_DEPENDENT_ROPE = ("dynamic", "longrope")
# Frequencies of these depend on which sequences were read before.
_STATEFUL_ROPE = ("dynamic",)


def check_architecture(config: Mapping[str, Any]) -> None:
    """Raise CheckpointError when the engine cannot promise its contract for this `config`.

    Reasons: ``unsupported_architecture``, ``bidirectional_attention``, ``sliding_window_unsupported``,
    ``rope_unsupported``, ``quantized_unsupported``.
    """
    model_type = str(config.get("model_type"))
    if model_type not in VERIFIED:
        raise CheckpointError(
            "unsupported_architecture",
            f"architecture {model_type!r} was not verified on this engine; {did_you_mean(model_type, VERIFIED)}. "
            "With attention: reference in the environment's configuration it runs on the slow reference path, "
            "without the engine's promises, and its record says so",
        )
    _check_weights_and_attention(config)
    window = config.get("sliding_window")
    if window is not None and (not isinstance(window, int) or window < 1):
        raise CheckpointError(
            "sliding_window_unsupported", f"sliding_window is {window!r}; give a number of positions, or null for all"
        )
    _check_rope(config, _LENGTH_DEPENDENT_ROPE)


def check_reference_architecture(config: Mapping[str, Any]) -> None:
    """Raise CheckpointError when not even transformers' own forward, one sequence at a time, can be what is recorded.

    Reasons: ``unsupported_architecture``, ``bidirectional_attention``, ``rope_unsupported``,
    ``quantized_unsupported``.
    """
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    model_type = str(config.get("model_type"))
    if model_type not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        raise CheckpointError(
            "unsupported_architecture",
            f"transformers has no causal language model for {model_type!r} of its own, and code from a checkpoint "
            "never runs",
        )
    _check_weights_and_attention(config)
    _check_rope(config, _STATEFUL_ROPE)


def _check_weights_and_attention(config: Mapping[str, Any]) -> None:
    """Refuse what is no causal language model in plain numbers."""
    model_type = config.get("model_type")
    if config.get("quantization_config"):
        raise CheckpointError(
            "quantized_unsupported",
            "config.json has a quantization_config; save the checkpoint in float32, bfloat16 or float16",
        )
    if config.get("add_cross_attention"):
        raise CheckpointError("unsupported_architecture", f"{model_type} with add_cross_attention is no language model")
    if config.get("use_bidirectional_attention"):
        raise CheckpointError(
            "bidirectional_attention",
            f"{model_type} with use_bidirectional_attention sees the tokens that it is to predict",
        )


def _check_rope(config: Mapping[str, Any], refused: tuple[str, ...]) -> None:
    """Refuse rotary embeddings of these types."""
    for kind in _rope_types(config.get("rope_parameters") or config.get("rope_scaling")):
        if kind in refused:
            raise CheckpointError(
                "rope_unsupported",
                f"rope type {kind!r} makes positions depend on the length of the batch; "
                "default, linear, llama3 and yarn do not",
            )


def _rope_types(rope: object) -> list[str]:
    """The types of rotary embeddings, of which there may be one per type of layer."""
    if not isinstance(rope, Mapping):
        return []
    nested = [kind for value in rope.values() for kind in _rope_types(value)]
    return [str(kind) for kind in (rope.get("rope_type"), rope.get("type")) if kind] + nested
