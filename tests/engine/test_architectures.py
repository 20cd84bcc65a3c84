"""Which architectures are refused, by config.json alone."""

from __future__ import annotations

import pytest

from eval_tasks.engine.architectures import VERIFIED, check_architecture
from eval_tasks.errors import CheckpointError


@pytest.mark.parametrize(
    ("config", "context", "reason"),
    [
        ({"model_type": "mixtral"}, 100, "unsupported_architecture"),
        ({}, 100, "unsupported_architecture"),
        ({"model_type": "gpt2", "add_cross_attention": True}, 100, "unsupported_architecture"),
        ({"model_type": "mistral", "sliding_window": 4096}, 4097, "sliding_window_unsupported"),
        ({"model_type": "qwen2", "sliding_window": 99, "use_sliding_window": True}, 100, "sliding_window_unsupported"),
        ({"model_type": "qwen3", "layer_types": ["sliding_attention"]}, 100, "sliding_window_unsupported"),
        ({"model_type": "llama", "rope_scaling": {"type": "dynamic"}}, 100, "rope_unsupported"),
        ({"model_type": "llama", "rope_parameters": {"rope_type": "longrope"}}, 100, "rope_unsupported"),
        ({"model_type": "llama", "quantization_config": {"bits": 4}}, 100, "quantized_unsupported"),
    ],
)
def test_refusals(config: dict[str, object], context: int, reason: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        check_architecture(config, context)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("config", "context"),
    [
        *(({"model_type": name}, 100) for name in VERIFIED),
        ({"model_type": "mistral", "sliding_window": 4096}, 4096),
        ({"model_type": "mistral", "sliding_window": None}, 32768),
        ({"model_type": "qwen2", "sliding_window": 99, "use_sliding_window": False}, 100),
        ({"model_type": "llama", "rope_scaling": None}, 100),
        ({"model_type": "llama", "rope_parameters": {"rope_type": "llama3", "factor": 8.0}}, 100),
    ],
)
def test_what_is_verified_passes(config: dict[str, object], context: int) -> None:
    check_architecture(config, context)


def test_a_near_miss_is_named() -> None:
    with pytest.raises(CheckpointError, match="close: 'qwen3'"):
        check_architecture({"model_type": "qwen33"}, 100)
