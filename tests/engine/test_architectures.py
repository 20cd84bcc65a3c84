"""Which architectures are refused, by config.json alone."""

from __future__ import annotations

import pytest

from eval_tasks.engine.architectures import VERIFIED, check_architecture
from eval_tasks.errors import CheckpointError


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"model_type": "dbrx"}, "unsupported_architecture"),
        ({}, "unsupported_architecture"),
        ({"model_type": "gpt2", "add_cross_attention": True}, "unsupported_architecture"),
        ({"model_type": "gemma3_text", "use_bidirectional_attention": True}, "bidirectional_attention"),
        ({"model_type": "mistral", "sliding_window": 0}, "sliding_window_unsupported"),
        ({"model_type": "mistral", "sliding_window": "4096"}, "sliding_window_unsupported"),
        ({"model_type": "llama", "rope_scaling": {"type": "dynamic"}}, "rope_unsupported"),
        ({"model_type": "llama", "rope_parameters": {"rope_type": "longrope"}}, "rope_unsupported"),
        (
            {"model_type": "gemma3_text", "rope_parameters": {"full_attention": {"rope_type": "dynamic"}}},
            "rope_unsupported",
        ),
        ({"model_type": "llama", "quantization_config": {"bits": 4}}, "quantized_unsupported"),
    ],
)
def test_refusals(config: dict[str, object], reason: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        check_architecture(config)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "config",
    [
        *({"model_type": name} for name in VERIFIED),
        {"model_type": "mistral", "sliding_window": 16},
        {"model_type": "mistral", "sliding_window": None},
        {"model_type": "qwen2", "sliding_window": 99, "use_sliding_window": False},
        {"model_type": "llama", "rope_scaling": None},
        {"model_type": "llama", "rope_parameters": {"rope_type": "llama3", "factor": 8.0}},
        {"model_type": "gemma3_text", "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0}}},
    ],
)
def test_what_is_verified_passes(config: dict[str, object]) -> None:
    check_architecture(config)


def test_a_near_miss_is_named() -> None:
    with pytest.raises(CheckpointError, match="close: 'qwen3'"):
        check_architecture({"model_type": "qwen33"})
