"""A checkpoint's folder in, named checks out: whether the engine's contract holds for it on this machine.

The sentinels are computed alone, in company, permuted, cut into other shards, at other tuning values and with other
thread counts, and compared bit for bit; and against the plain model, within a tolerance. What the nightly gate and an
image's health gate call.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from eval_tasks.engine.engine import Engine, load_engine
from eval_tasks.engine.loading import load_model
from eval_tasks.engine.memory import Workload
from eval_tasks.engine.runtime import EXACT_THREADS
from eval_tasks.engine.sentinels import sentinel_requests
from eval_tasks.records import EngineConfig, EngineTuning, Request, Response

PLAIN_MODEL = "agrees with the plain model"
# What the reference path can promise: nothing of other threads, of caches, or of cutting a sequence.
REFERENCE_PROMISES = ("again", "loaded again", "alone", "backwards", "items removed")
_REFERENCE_STEP = 4
_MAX_CONTEXT = 512
# Per token, in nats. Below float32 the two round at other places: only a wrong function is found.
_TOLERANCE = {"float32": 1e-3, "bfloat16": 1.0, "float16": 0.25}
_FEW = EngineTuning(tokens_per_forward=50, decode_rows=4)

Run = Callable[[], Sequence[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One promise and whether it held. `differing`: item ids of rows that were not bit-identical (`PLAIN_MODEL`: not
    within the tolerance).
    """

    name: str
    passed: bool
    n_items: int
    differing: tuple[str, ...] = ()
    seconds: float = 0.0


def verify_engine(
    folder: Path, config: EngineConfig, progress: Callable[[int, int], None] | None = None
) -> list[Check]:
    """The checks, in a fixed order; `progress(checks_done, checks_total)`. Raises what `load_engine` raises."""
    # As much as the largest sentinels ask for; the tuning that then fits is where others are tried from.
    most = Workload(prompt_tokens=_MAX_CONTEXT, output_tokens=8, n_sequences=600, generates=True)
    engine = load_engine(folder, config, workload=most)
    requests = sentinel_requests(engine.tokenizer.vocab_size, min(engine.context, _MAX_CONTEXT))
    requests = requests[::_REFERENCE_STEP] if config.attention == "reference" else requests
    base = identities(engine.with_prefix("none").respond(requests))
    runs: dict[str, Callable[[], Check]] = {
        name: partial(_compared, name, base, run)
        for name, run in _runs(engine, folder, requests).items()
        if config.attention != "reference" or name in REFERENCE_PROMISES
    }
    runs[PLAIN_MODEL] = partial(_compared_with_plain_model, folder, config, engine.tokenizer.vocab_size, requests, base)
    checks: list[Check] = []
    for name in runs:
        if progress:
            progress(len(checks), len(runs))
        began = time.perf_counter()
        check = runs[name]()
        checks.append(dataclasses.replace(check, seconds=time.perf_counter() - began))
    if progress:
        progress(len(checks), len(runs))
    return checks


def identities(responses: Sequence[Response]) -> dict[str, Response]:
    """Responses by item id, without their timings: what must be bit-identical."""
    return {response.item_id: dataclasses.replace(response, latency_ms=0.0) for response in responses}


def _runs(engine: Engine, folder: Path, requests: Sequence[Request]) -> dict[str, Run]:
    """By what is varied: other ways to the same rows."""
    config, tuning = engine.config, engine.tuning
    n_tokens, context = engine.tokenizer.vocab_size, min(engine.context, _MAX_CONTEXT)
    strangers = [dataclasses.replace(r, item_id=f"other-{r.item_id}") for r in sentinel_requests(n_tokens, context, 1)]
    shuffled = list(requests)
    Random(0).shuffle(shuffled)  # noqa: S311 - an order, no secret
    many = dataclasses.replace(tuning, tokens_per_forward=4 * tuning.tokens_per_forward, decode_rows=64)
    runs: dict[str, Run] = {
        "again": lambda: engine.with_prefix("none").respond(requests),
        "loaded again": lambda: load_engine(folder, config, tuning).respond(requests[::4]),
        "alone": lambda: [engine.respond([request])[0] for request in requests],
        "backwards": lambda: engine.respond(requests[::-1]),
        "reordered": lambda: engine.respond(shuffled),
        "items removed": lambda: engine.respond(requests[::3]),
        "items added": lambda: engine.respond([r for pair in zip(strangers, requests, strict=True) for r in pair]),
        "resharded": lambda: _in_shards(engine, requests, n_shards=3, batch=32),
        "perturbed plan": lambda: _perturbed(engine, shuffled),
        "few tokens per forward": lambda: engine.tuned(_FEW).respond(requests[::2]),
        "many tokens per forward": lambda: engine.tuned(many).respond(requests),
        "shared prefix, cache empty": lambda: engine.with_prefix("shared").respond(requests),
        "shared prefix, cache warm": lambda: _twice(engine.with_prefix("shared"), requests),
        "shared prefix, small cache": lambda: _small_cache(engine, requests[1::2]),
    }
    for threads in EXACT_THREADS:
        if threads != config.threads:
            runs[f"{threads} thread{'s' * (threads > 1)}"] = partial(_on_threads, engine, threads, requests[::4])
    return runs


def _in_shards(engine: Engine, requests: Sequence[Request], *, n_shards: int, batch: int) -> list[Response]:
    """Every n-th item to another worker with its own empty caches, batch by batch as a pod works."""
    responses = []
    for shard in range(n_shards):
        worker = engine.with_prefix("shared")
        mine = requests[shard::n_shards]
        for start in range(0, len(mine), batch):
            responses += worker.respond(mine[start : start + batch])
    return responses


def _perturbed(engine: Engine, requests: Sequence[Request]) -> list[Response]:
    """Batches of any size, each at another tuning, with or without a cache that is kept from one to the next."""
    responses = []
    rng = Random(1)  # noqa: S311 - sizes, no secret
    for batch in _of_any_size(requests, rng):
        tuning = EngineTuning(
            tokens_per_forward=rng.choice((33, 64, 300, engine.tuning.tokens_per_forward)),
            decode_rows=rng.choice((4, 7, 32)),
            prefix_cache_mb=rng.choice((0, 1, engine.tuning.prefix_cache_mb)),
        )
        worker = engine.with_prefix(rng.choice(("none", "shared"))).tuned(tuning)
        middle = rng.randrange(len(batch) + 1)
        responses += [*worker.respond(batch[:middle]), *worker.respond(batch[middle:])]
    return responses


def _of_any_size(requests: Sequence[Request], rng: Random) -> Iterator[Sequence[Request]]:
    start = 0
    while start < len(requests):
        size = rng.randrange(1, 48)
        yield requests[start : start + size]
        start += size


def _small_cache(engine: Engine, requests: Sequence[Request]) -> Sequence[Response]:
    small = dataclasses.replace(engine.tuning, prefix_cache_mb=1)
    return _twice(engine.with_prefix("shared").tuned(small), requests)


def _on_threads(engine: Engine, threads: int, requests: Sequence[Request]) -> Sequence[Response]:
    return engine.with_threads(threads).respond(requests)


def _twice(engine: Engine, requests: Sequence[Request]) -> Sequence[Response]:
    engine.respond(requests)
    return engine.respond(requests)


def _compared(name: str, base: Mapping[str, Response], run: Run) -> Check:
    """Rows of items that `base` does not know are of companions."""
    found = {item_id: row for item_id, row in identities(run()).items() if item_id in base}
    differing = tuple(item_id for item_id, row in found.items() if not _same(row, base[item_id]))
    return Check(name=name, passed=bool(found) and not differing, n_items=len(found), differing=differing)


def _same(a: Response, b: Response) -> bool:
    """Bit for bit: what is not a number is one thing, and minus zero is not zero."""
    return a == b and repr(a) == repr(b)


def _compared_with_plain_model(
    folder: Path, config: EngineConfig, vocab_size: int, requests: Sequence[Request], base: Mapping[str, Response]
) -> Check:
    """Whether one-token choices have the log-probabilities that transformers' own forward gives."""
    import torch

    model = load_model(folder, config.dtype, torch.device(config.device), vocab_size, attention="eager")
    shared = [r for r in requests if r.prompt_ids and r.continuations and all(len(c) == 1 for c in r.continuations)]
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
