"""`make bench-engine-gpu`: what the engine does on this GPU, and what invariance costs, on random weights in bfloat16.

One JSON line with the device's name: items and tokens per second of scoring and of decoding, each against the same
model on torch's default kernels in the same run, and the share of the matrix peak that scoring reaches.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

ITEMS, PROMPT_TOKENS, STEPS, REPEATS = 32, 704, 64, 5
VOCABULARY = 128256
# Widths of models that people train: hidden, feed-forward, layers, heads, key-value heads.
SIZES = {"1b": (2048, 8192, 16, 32, 8), "3b": (3072, 8192, 28, 24, 8), "8b": (4096, 14336, 32, 32, 8)}
_SEED = 7


def main(arguments: list[str] | None = None) -> int:
    """Measure, print one JSON line; 1 where it cannot be measured."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.engine_gpu", description=__doc__)
    parser.add_argument("--size", choices=sorted(SIZES), default="1b")
    size = parser.parse_args(arguments).size
    import torch

    if not torch.cuda.is_available():
        sys.stderr.write("no GPU: torch sees no CUDA device here, so nothing was measured; run this on a GPU machine\n")
        return 1
    from eval_tasks.engine.runtime import prepare_torch
    from eval_tasks.records import EngineConfig

    prepare_torch(EngineConfig(device="cuda", dtype="bfloat16"))
    ids = torch.randint(VOCABULARY, (ITEMS, PROMPT_TOKENS), generator=torch.Generator().manual_seed(_SEED))
    with torch.inference_mode():
        peak = _peak()
        default = _default(_model(size, "sdpa"), ids.cuda())
        gc.collect()
        torch.cuda.empty_cache()
        engine, n_weights, graph_problem = _engine(_model(size, "checkpoint_eval_tile"), ids.tolist())
    tokens = ITEMS * PROMPT_TOKENS
    result = {
        "benchmark": "engine_gpu",
        "device": torch.cuda.get_device_name(),
        "model": f"llama-{size}, random, bfloat16",
        "score_items_per_second": round(ITEMS / engine["score"], 2),
        "score_tokens_per_second": round(tokens / engine["score"]),
        "decode_tokens_per_second": round(ITEMS / engine["decode"], 1),
        "decode_without_graphs_tokens_per_second": round(ITEMS / engine["decode_without_graphs"], 1),
        "score_cost_of_invariance": round(engine["score"] / default["score"], 3),
        "decode_cost_of_invariance": round(engine["decode"] / default["decode"], 3),
        "matrix_peak_tflops": round(peak / 1e12, 1),
        "score_mfu": round(2 * n_weights * tokens / engine["score"] / peak, 3),
        "graph_problem": graph_problem,
        "torch": torch.__version__,
    }
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


def _model(size: str, attention: str) -> Any:
    import torch
    import transformers

    from eval_tasks.engine.attention import register

    register()
    hidden, inner, layers, heads, groups = SIZES[size]
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=groups,
        max_position_embeddings=4096,
        attn_implementation=attention,
    )
    torch.manual_seed(_SEED)
    with torch.device("cuda"):
        return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()


def _default(model: Any, ids: Any) -> dict[str, float]:
    """Seconds of a scoring forward of the last position, and of a decoding step, on torch's own kernels."""
    seconds = {"score": _seconds(lambda: model(ids, use_cache=False, logits_to_keep=1).logits.log_softmax(-1))}
    cache = model(ids, logits_to_keep=1).past_key_values
    token = ids[:, -1:]

    def steps() -> None:
        for _ in range(STEPS):
            model(token, past_key_values=cache).logits.argmax(-1).tolist()

    seconds["decode"] = _seconds(steps, repeats=2) / STEPS
    return seconds


def _engine(model: Any, items: list[list[int]]) -> tuple[dict[str, float], int, str]:
    """The same through the engine; the number of weights that a token is multiplied with; why graphs failed."""
    from eval_tasks.engine.cuda.rows import pin_norms
    from eval_tasks.engine.forward import Body, Decoded, Part, room_for
    from eval_tasks.engine.head import Head
    from eval_tasks.engine.linears import pin_linears

    base, output = model.base_model, model.get_output_embeddings()
    n_weights = sum(p.numel() for name, p in base.named_parameters() if "embed" not in name)
    head = Head(output.weight, None)
    body = Body(base, base.config, widths=pin_linears(base))
    pin_norms(base)
    caches = [body.key_values(room_for(PROMPT_TOKENS + 4 * STEPS)) for _ in items]
    parts = [Part(ids=ids, start=0, cache=cache) for ids, cache in zip(items, caches, strict=True)]
    last = [(i + 1) * PROMPT_TOKENS - 1 for i in range(ITEMS)]
    seconds = {"score": _seconds(lambda: head.logprobs_of(body.forward(parts)[0][last], [[0]] * ITEMS))}

    def steps(graph_bytes: int) -> None:
        for step in range(STEPS):
            decoded = [Decoded(1, PROMPT_TOKENS + step, cache) for cache in caches]
            head.greedy(body.forward((), decoded, graph_bytes=graph_bytes)[1])

    seconds["decode_without_graphs"] = _seconds(lambda: steps(0), repeats=2) / STEPS
    seconds["decode"] = _seconds(lambda: steps(1 << 30), repeats=2) / STEPS
    return seconds, n_weights, body.graphs.problem if body.graphs else "none were tried"


def _peak() -> float:
    """Operations per second of the largest bfloat16 product that is worth timing."""
    import torch

    n = 8192
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return 2 * n**3 / _seconds(lambda: a @ b, repeats=20)


def _seconds(run: Callable[[], object], repeats: int = REPEATS) -> float:
    """The median of `repeats` runs, after one that compiles."""
    import torch

    run()
    found = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        began = time.perf_counter()
        run()
        torch.cuda.synchronize()
        found.append(time.perf_counter() - began)
    return statistics.median(found)


if __name__ == "__main__":
    raise SystemExit(main())
