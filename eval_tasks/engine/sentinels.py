"""A checkpoint's folder in, named checks out: whether the engine's contract holds for it on this machine.

About a hundred made-up items of all shapes are computed alone, in company, permuted, at other tuning values and with
other thread counts, and compared bit for bit; and against the plain model, within a tolerance. What the nightly gate
and an image's health gate call.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_tasks.engine.engine import Engine, load_engine
from eval_tasks.engine.runtime import EXACT_THREADS
from eval_tasks.records import EngineConfig, EngineTuning, Request, Response

if TYPE_CHECKING:
    import numpy as np

PLAIN_MODEL = "agrees with the plain model"
LENGTHS = (*range(1, 14), 31, 32, 33, 63, 64, 65, 127, 128, 129)
_MAX_NEW_TOKENS = 8
_MAX_CONTEXT = 512
# Per token, in nats. Below float32 the two round at other places: only a wrong function is found.
_TOLERANCE = {"float32": 1e-3, "bfloat16": 1.0, "float16": 0.25}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One promise and whether it held. `differing`: item ids of rows that were not bit-identical (`PLAIN_MODEL`: not
    within the tolerance).
    """

    name: str
    passed: bool
    n_items: int
    differing: tuple[str, ...] = ()


def sentinel_requests(n_tokens: int, context: int, seed: int = 0) -> list[Request]:
    """Requests of all kinds and shapes that fit `context`, with ids below `n_tokens`, drawn from `seed` alone."""
    import numpy as np

    rng = np.random.Generator(np.random.PCG64(seed))
    requests = []
    for length in (n for n in (*LENGTHS, context - 1) if n < context):
        prompt = _draw(rng, n_tokens, length)
        room = context + 1 - length
        longer = tuple(_draw(rng, n_tokens, min(n, room)) for n in (3, 1, 2))
        requests += [
            _request("choice", f"one-token-{length}", prompt, tuple(_draw(rng, n_tokens, 1) for _ in range(4))),
            _request("choice", f"longer-{length}", prompt, longer),
            _request("generation", f"generation-{length}", prompt),
        ]
        if length > 1:
            requests.append(_request("loss", f"loss-{length}", prompt[:1], (prompt[1:],)))
    preamble = _draw(rng, n_tokens, min(130, context // 2))
    for i in range(8):
        prompt = preamble + _draw(rng, n_tokens, min(20 + i, context // 4))
        requests.append(_request("choice", f"preamble-{i}", prompt, tuple(_draw(rng, n_tokens, 1) for _ in range(4))))
    return requests


def verify_engine(folder: Path, config: EngineConfig) -> list[Check]:
    """The checks, in a fixed order. Raises what `load_engine` raises."""
    engine = load_engine(folder, config)
    requests = sentinel_requests(engine.tokenizer.vocab_size, min(engine.context, _MAX_CONTEXT))
    base = identities(engine.with_prefix("none").respond(requests))
    backwards = list(reversed(requests))
    few_rows = EngineTuning(tokens_per_forward=7, decode_rows=4)
    many_rows = EngineTuning(tokens_per_forward=4096, decode_rows=64, prefix_cache_mb=engine.tuning.prefix_cache_mb)
    runs: list[tuple[str, Callable[[], Sequence[Response]]]] = [
        ("again", lambda: engine.with_prefix("none").respond(requests)),
        ("backwards", lambda: engine.respond(backwards)),
        ("alone", lambda: [engine.respond([request])[0] for request in requests]),
        ("every third", lambda: engine.respond(requests[::3])),
        ("few tokens per forward", lambda: engine.tuned(few_rows).respond(requests)),
        ("many tokens per forward", lambda: engine.tuned(many_rows).respond(requests)),
        ("shared prefix, cache empty", lambda: engine.with_prefix("shared").respond(requests)),
        ("shared prefix, cache warm", lambda: _twice(engine.with_prefix("shared"), requests)),
    ]
    others = (n for n in EXACT_THREADS if n != config.threads)
    runs += [(f"{n} threads", partial(_on_threads, engine, n, requests[::4])) for n in others]
    checks = [_compare(name, base, run()) for name, run in runs]
    return [*checks, _compare_with_plain_model(folder, config, requests, base)]


def identities(responses: Sequence[Response]) -> dict[str, Response]:
    """Responses by item id, without their timings: what must be bit-identical."""
    return {response.item_id: dataclasses.replace(response, latency_ms=0.0) for response in responses}


def _compare_with_plain_model(
    folder: Path, config: EngineConfig, requests: Sequence[Request], base: Mapping[str, Response]
) -> Check:
    """Whether one-token choices have the log-probabilities that transformers' own forward gives."""
    import torch
    import transformers

    load: Any = transformers.AutoModelForCausalLM.from_pretrained
    model = load(
        folder,
        dtype=getattr(torch, config.dtype),
        attn_implementation="eager",
        use_safetensors=True,
        local_files_only=True,
    )
    model = model.to(config.device).eval()
    shared = [r for r in requests if r.kind == "choice" and all(len(c) == 1 for c in r.continuations)]
    differing = []
    for request in shared:
        with torch.inference_mode():
            logits = model(torch.tensor([request.prompt_ids], device=config.device)).logits[0, -1]
        expected = logits.float().log_softmax(-1)[[c[0] for c in request.continuations]].tolist()
        found = base[request.item_id].logprobs
        pairs = zip(expected, found, strict=False)
        if len(found) != len(expected) or any(not abs(a - b) <= _TOLERANCE[config.dtype] for a, b in pairs):
            differing.append(request.item_id)
    return Check(name=PLAIN_MODEL, passed=not differing, n_items=len(shared), differing=tuple(differing))


def _on_threads(engine: Engine, threads: int, requests: Sequence[Request]) -> Sequence[Response]:
    return engine.with_threads(threads).respond(requests)


def _twice(engine: Engine, requests: Sequence[Request]) -> Sequence[Response]:
    engine.respond(requests)
    return engine.respond(requests)


def _compare(name: str, base: dict[str, Response], responses: Sequence[Response]) -> Check:
    found = identities(responses)
    differing = tuple(item_id for item_id, response in found.items() if response != base[item_id])
    return Check(name=name, passed=not differing, n_items=len(found), differing=differing)


def _draw(rng: np.random.Generator, n_tokens: int, length: int) -> tuple[int, ...]:
    return tuple(rng.integers(0, n_tokens, size=length).tolist())


def _request(
    kind: str, item_id: str, prompt: tuple[int, ...], continuations: tuple[tuple[int, ...], ...] = ()
) -> Request:
    return Request(
        benchmark_id="sentinels",
        item_id=item_id,
        kind=kind,  # type: ignore[arg-type]
        prompt="",
        prompt_digest="",
        prompt_ids=prompt,
        continuations=continuations,
        max_tokens=_MAX_NEW_TOKENS if kind == "generation" else 0,
    )
