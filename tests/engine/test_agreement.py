"""The engine computes the model's own function: plain transformers, one item at a time, gives the same numbers."""

from __future__ import annotations

from typing import Any

import pytest

from eval_tasks.engine.sentinels import sentinel_requests
from tests.engine.conftest import FAMILIES

# Prompts and outputs reach several times these windows, and one more is as long as a tile.
WINDOWED: list[tuple[str, dict[str, Any]]] = [
    *(("mistral", {"sliding_window": window}) for window in (2, 32, 70)),
    ("qwen2", {"sliding_window": 33, "use_sliding_window": True, "max_window_layers": 1}),
    (
        "qwen3",
        {"sliding_window": 33, "use_sliding_window": True, "layer_types": ["full_attention", "sliding_attention"]},
    ),
    ("qwen3", {"sliding_window": 33, "use_sliding_window": False}),
    ("gemma2", {"sliding_window": 64}),
]
MODELS = [*((family, {}) for family in FAMILIES), *WINDOWED]


def _plain(folder):
    import transformers

    return transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()


def _plain_logprobs(model, prompt, continuation) -> list[float]:
    import torch

    ids = torch.tensor([[*prompt, *continuation[:-1]]])
    with torch.inference_mode():
        logprobs = model(ids).logits[0].float().log_softmax(-1)
    start = len(prompt) - 1
    return [logprobs[start + k, token].item() for k, token in enumerate(continuation)]


@pytest.mark.parametrize(("family", "changes"), MODELS)
def test_logprobs_are_the_plain_models(build, load, family: str, changes: dict[str, Any]) -> None:
    engine = load(family, **changes)
    model = _plain(build(family, **changes))
    sentinels = sentinel_requests(259, engine.context)
    requests = [r for r in sentinels if r.continuations and not r.item_id.startswith("invalid")][::3]
    for request, response in zip(requests, engine.respond(requests), strict=True):
        for found, continuation in zip(response.token_logprobs, request.continuations, strict=True):
            assert found == pytest.approx(_plain_logprobs(model, request.prompt_ids, continuation), abs=1e-4)


@pytest.mark.parametrize(("family", "changes"), MODELS)
def test_greedy_tokens_are_those_of_generate(build, load, ask, family: str, changes: dict[str, Any]) -> None:
    engine = load(family, **changes)
    model = _plain(build(family, **changes))
    prompts = [tuple(range(3, 3 + n)) for n in (1, 5, 63, 64, 100)]
    requests = [ask("generation", p, item_id=str(len(p)), max_tokens=20) for p in prompts]
    for prompt, response in zip(prompts, engine.respond(requests), strict=True):
        assert list(response.output_ids) == _generated(model, prompt, 20)


@pytest.mark.golden
@pytest.mark.parametrize("name", ["stories260K-hf", "babyllama105-hf"])
def test_trained_models_write_what_generate_writes(golden, ask, name: str) -> None:
    from eval_tasks.engine import load_engine
    from eval_tasks.records import EngineConfig

    folder = golden / "models" / name
    engine = load_engine(folder, EngineConfig())
    prompt = (engine.tokenizer.bos_id, *engine.tokenizer.encode("Once upon a time"))
    (response,) = engine.respond([ask("generation", prompt, max_tokens=150)])
    assert list(response.output_ids) == _generated(_plain(folder), prompt, 150)
    assert "there was a" in response.output


def _generated(model, prompt, n: int) -> list[int]:
    import torch

    ids = torch.tensor([prompt])
    out = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=n, pad_token_id=0)
    return out[0, len(prompt) :].tolist()
