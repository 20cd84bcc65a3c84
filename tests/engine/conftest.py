"""Tiny random-weight checkpoints, built in the test run, and engines over them."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from eval_tasks.engine import Engine, load_engine
from eval_tasks.records import EngineConfig, EngineTuning, Request

FAMILIES = ("gemma", "gemma2", "gemma3_text", "gpt2", "llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe")
CONTEXT = 200
# What makes a family's test model show what is its own: windows much shorter than the prompts, caps that are felt.
_OWN: dict[str, dict[str, Any]] = {
    "gemma": {"head_dim": 24},
    "gemma2": {
        "head_dim": 24,
        "sliding_window": 37,
        "attn_logit_softcapping": 2.0,
        "final_logit_softcapping": 3.0,
        "query_pre_attn_scalar": 20,
    },
    "gemma3_text": {
        "head_dim": 24,
        "sliding_window": 37,
        "query_pre_attn_scalar": 20,
        "layer_types": ["sliding_attention", "full_attention"],
    },
    "granite": {"logits_scaling": 4.0, "residual_multiplier": 0.5},
    "mistral": {"sliding_window": None},
    "mixtral": {"num_local_experts": 5, "num_experts_per_tok": 2},
    "qwen3_moe": {"num_experts": 12, "num_experts_per_tok": 3, "moe_intermediate_size": 44, "norm_topk_prob": True},
}

Build = Callable[..., Path]
Load = Callable[..., Engine]
Ask = Callable[..., Request]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """build(family, **config) -> the folder of a two-layer model of that family, the same for the same arguments."""

    @cache
    def cached(family: str, changes: str) -> Path:
        folder = tmp_path_factory.mktemp(family)
        _save_tokenizer(folder)
        _save_model(folder, family, json.loads(changes))
        return folder

    return lambda family, **changes: cached(family, json.dumps(changes, sort_keys=True))


@pytest.fixture(scope="session")
def load(build: Build) -> Load:
    """load(family, dtype, prefix, **config) -> an engine, loaded once per session for the same arguments."""

    @cache
    def cached(family: str, dtype: Any, prefix: Any, changes: str) -> Engine:
        folder = build(family, **json.loads(changes))
        return load_engine(folder, EngineConfig(dtype=dtype, prefix=prefix), EngineTuning(tokens_per_forward=100))

    return lambda family, dtype="float32", prefix="none", **changes: cached(
        family, dtype, prefix, json.dumps(changes, sort_keys=True)
    )


@pytest.fixture(scope="session")
def ask() -> Ask:
    """ask(kind, prompt_ids, ...) -> a request."""

    def request(kind: Any, prompt_ids: Any, item_id: str = "item", **fields: Any) -> Request:
        return Request(
            benchmark_id="bench",
            item_id=item_id,
            kind=kind,
            prompt="",
            prompt_digest="digest",
            prompt_ids=tuple(prompt_ids),
            **fields,
        )

    return request


def _save_tokenizer(folder: Path) -> None:
    """One token per byte, and three special ones: <s> 0, </s> 1, <|end|> 2."""
    specials = ["<s>", "</s>", "<|end|>"]
    vocab = {token: i for i, token in enumerate([*specials, *sorted(pre_tokenizers.ByteLevel.alphabet())])}
    tokenizer = Tokenizer(models.BPE(vocab, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in specials])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>", "eos_token": "</s>"}))


def _save_model(folder: Path, family: str, changes: dict[str, Any]) -> None:
    import torch
    import transformers

    settings = {
        "vocab_size": 259,
        "hidden_size": 64,
        "intermediate_size": 172,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": CONTEXT,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": None,
        "initializer_range": 0.3,
    }
    if family == "gpt2":
        settings["n_inner"] = settings.pop("intermediate_size")
    else:
        settings["num_key_value_heads"] = 2
    config = transformers.AutoConfig.for_model(family, **{**settings, **_OWN.get(family, {}), **changes})
    torch.manual_seed(7)
    model = transformers.AutoModelForCausalLM.from_config(config)
    # Fresh norms and biases are ones and zeros, which would hide a wrong or missing one.
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn(parameter.shape) * 0.1).clamp_(-3, 3)
    model.save_pretrained(folder)
