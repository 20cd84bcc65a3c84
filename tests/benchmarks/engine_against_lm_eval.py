"""Choice, loss and generation: items per CPU-second of our engine and of lm-eval 0.4.9's `hf`, on the same token ids.

lm-eval runs at each of `BATCH_SIZES` once, then in turn with ours at its best one. That both give the same results is
asserted, within what the data type allows.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from eval_tasks.engine import Engine
from eval_tasks.records import Request, Response
from tests.benchmarks.engine_rounds import Seconds, compared, in_turn, timed
from tests.parity.reference import Reference

BATCH_SIZES = (1, 8, 32)
# Per token of a continuation. In bfloat16 the reference's log-probabilities themselves are rounded to bfloat16.
TOLERANCE = {"float32": 1e-4, "bfloat16": 0.5}
Ask = Callable[[int], dict[str, Any]]


def scoring(engine: Engine, reference: Reference, requests: Sequence[Request], rounds: int) -> dict[str, Any]:
    """Requests of kind choice or loss."""
    pairs = [[list(r.prompt_ids), list(c)] for r in requests for c in r.continuations]

    def ask(batch_size: int) -> dict[str, Any]:
        return reference.ask("score", pairs=pairs, batch_size=batch_size)

    found, responses, answer = _race(engine, requests, ask, rounds)
    agreement = _agreement(responses, answer["values"], engine.config.dtype)
    lengths = [len(r.prompt_ids) + max(map(len, r.continuations)) for r in requests]
    return {**found, "agreement": agreement, "tokens": _spread(lengths)}


def generation(engine: Engine, reference: Reference, requests: Sequence[Request], rounds: int) -> dict[str, Any]:
    """Requests of kind generation, all with the same stop strings and limit: lm-eval can batch them as it likes."""
    prompts = [request.prompt for request in requests]
    settings = {"until": list(requests[0].stops), "do_sample": False, "max_gen_toks": requests[0].max_tokens}

    def ask(batch_size: int) -> dict[str, Any]:
        return reference.ask("generate", prompts=prompts, settings=settings, batch_size=batch_size)

    found, responses, answer = _race(engine, requests, ask, rounds)
    same = sum(r.output == text for r, text in zip(responses, answer["texts"], strict=True))
    if engine.config.dtype == "float32" and same < len(requests):
        raise AssertionError(f"{len(requests) - same} of {len(requests)} texts differ from lm-eval's in float32")
    return {
        **found,
        "agreement": {"same_texts": same},
        "tokens": _spread([len(r.prompt_ids) for r in requests]),
        "output_tokens": _spread([r.n_output_tokens for r in responses]),
    }


def with_stops(engine: Engine, requests: Sequence[Request], mean: float, n_stops: int = 3) -> list[Request]:
    """The requests with stop strings that end this model's outputs after `mean` tokens on average, some at once.

    Random weights end no output by themselves. The strings are words that occur in the outputs: chosen one by one, each
    the one that brings the mean length closest to what is wanted.
    """
    texts = [response.output for response in engine.respond([replace(r, stops=()) for r in requests])]
    limit = requests[0].max_tokens
    common = Counter(word for text in texts for word in set(text.split()) if word.isascii() and len(word) > 1)
    words = [word for word, _ in sorted(common.items(), key=lambda each: (-each[1], each[0]))[:400]]
    stops: list[str] = []

    def distance(word: str) -> float:
        lengths = [limit * _end(text, [*stops, word]) / max(1, len(text)) for text in texts]
        return abs(statistics.mean(lengths) - mean)

    for _ in range(min(n_stops, len(words))):
        stops.append(min((word for word in words if word not in stops), key=distance))
    return [replace(request, stops=tuple(stops)) for request in requests]


def _end(text: str, stops: Sequence[str]) -> int:
    return min((at for stop in stops if (at := text.find(stop)) >= 0), default=len(text))


def _race(
    engine: Engine, requests: Sequence[Request], ask: Ask, rounds: int
) -> tuple[dict[str, Any], list[Response], dict[str, Any]]:
    """Figures, our responses, lm-eval's last answer. Each of our rounds begins with no prefix kept."""
    responses: list[Response] = []
    answers: dict[int, dict[str, Any]] = {}

    def ours() -> Seconds:
        fresh = engine.tuned(engine.tuning)
        responses.clear()
        return timed(lambda: responses.extend(fresh.respond(requests)))

    def theirs(batch_size: int) -> Seconds:
        answers[batch_size] = ask(batch_size)
        return Seconds(answers[batch_size]["cpu_seconds"], answers[batch_size]["wall_seconds"])

    engine.tuned(engine.tuning).respond(requests[:1])
    sizes = sorted({min(size, len(requests)) for size in BATCH_SIZES})
    tried = {size: theirs(size) for size in sizes}
    best = min(sizes, key=lambda size: tried[size].cpu)
    seconds = in_turn({"ours": ours, "theirs": lambda: theirs(best)}, rounds)
    per_second = {str(size): round(len(requests) / tried[size].cpu, 3) for size in sizes}
    found = {
        "unit": "items per CPU-second",
        "n_items": len(requests),
        **compared(seconds["ours"], seconds["theirs"], len(requests)),
        "baseline_is": f"lm-eval 0.4.9 hf, batch size {best}",
        "baseline_by_batch_size": per_second,
    }
    return found, responses, answers[best]


def _agreement(responses: Sequence[Response], values: Sequence[float], dtype: str) -> dict[str, Any]:
    """The largest difference per token; in float32 also that no prediction differs."""
    at = 0
    worst = 0.0
    n_other = 0
    for response in responses:
        if response.status != "ok":
            raise AssertionError(f"item {response.item_id} is {response.status}: {response.reason}")
        ours = response.logprobs
        theirs = values[at : at + len(ours)]
        at += len(ours)
        for a, b, tokens in zip(ours, theirs, response.token_logprobs, strict=True):
            worst = max(worst, abs(a - b) / len(tokens))
        n_other += ours.index(max(ours)) != list(theirs).index(max(theirs))
    if worst > TOLERANCE[dtype] or (dtype == "float32" and n_other):
        raise AssertionError(
            f"{dtype}: log-probabilities differ by {worst:.2e} per token, {n_other} predictions differ"
        )
    return {"worst_per_token": float(f"{worst:.2e}"), "other_predictions": n_other}


def _spread(values: Sequence[int]) -> dict[str, float]:
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}
