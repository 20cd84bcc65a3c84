"""A vocabulary and a context in, about two hundred made-up requests of all kinds and shapes out, the same each time.

What each is there for stands in its item id. Knows no engine.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from eval_tasks.records import Request, Sampling

if TYPE_CHECKING:
    import numpy as np

Ids = tuple[int, ...]

# Around every multiple at which some kernel or tile begins anew, and all the lengths below which kernels differ most.
LENGTHS = (*range(1, 14), 31, 32, 33, 63, 64, 65, 127, 128, 129)
_LONG = (200, 257, 300, 400)
_SAMPLED = (1, 5, 33, 64, 129)
_SAMPLING = Sampling(temperature=1.5, samples=3, top_p=0.95, reason="the contract holds for draws too")
_MAX_NEW_TOKENS = 8


def sentinel_requests(n_tokens: int, context: int, seed: int = 0) -> list[Request]:
    """Requests that fit `context`, with ids below `n_tokens`, drawn from `seed` alone, and three that must not run."""
    import numpy as np

    rng = np.random.Generator(np.random.PCG64(seed))
    lengths = [n for n in dict.fromkeys((*LENGTHS, context - 1)) if n < context]
    return [
        *(request for length in lengths for request in _of_length(rng, n_tokens, length, context)),
        *_with_preambles(rng, n_tokens, context),
        *_documents(rng, n_tokens, context),
        *_at_the_edge(rng, n_tokens, context),
        *_unscoreable(rng, n_tokens, context),
        *_sampled(rng, n_tokens, context),
    ]


def _of_length(rng: np.random.Generator, n_tokens: int, length: int, context: int) -> list[Request]:
    """Every kind on a prompt of `length`, and one more choice on a prompt that shares its first half."""
    prompt = _draw(rng, n_tokens, length)
    sibling = prompt[: length // 2] + _draw(rng, n_tokens, length - length // 2)
    room = context + 1 - length
    longer = tuple(_draw(rng, n_tokens, min(n, room)) for n in (3, 1, 2))
    requests = [
        _request("choice", f"one-token-{length}", prompt, _letters(rng, n_tokens)),
        _request("choice", f"longer-{length}", prompt, longer),
        _request("choice", f"sibling-{length}", sibling, (*longer[:2], _draw(rng, n_tokens, 1))),
        _request("generation", f"generation-{length}", prompt),
        _request("generation", f"generation-sibling-{length}", sibling),
    ]
    if length > 1:
        requests.append(_request("loss", f"loss-{length}", prompt[:1], (prompt[1:],)))
        requests.append(_request("loss", f"loss-sibling-{length}", sibling[:1], (sibling[1:],)))
    return requests


def _with_preambles(rng: np.random.Generator, n_tokens: int, context: int) -> list[Request]:
    """Few-shot preambles, the second going on where the first ends, each before several questions of every kind."""
    first = _draw(rng, n_tokens, min(130, context // 3))
    second = first + _draw(rng, n_tokens, min(70, context // 6))
    requests = []
    for name, preamble in (("preamble", first), ("preamble-and-more", second)):
        for i in range(8):
            question = _draw(rng, n_tokens, min(20 + i, context // 4))
            requests.append(_request("choice", f"{name}-{i}", preamble + question, _letters(rng, n_tokens)))
        for i in range(4):
            question = _draw(rng, n_tokens, min(5 + i, context // 4))
            longer = tuple(_draw(rng, n_tokens, 1 + (n + i) % 4) for n in range(4))
            requests.append(_request("choice", f"{name}-longer-{i}", preamble + question, longer))
            requests.append(_request("generation", f"{name}-generation-{i}", preamble + question))
    return requests


def _documents(rng: np.random.Generator, n_tokens: int, context: int) -> list[Request]:
    """Documents that no forward may cut otherwise than it likes."""
    texts = [_draw(rng, n_tokens, length) for length in _LONG if length <= context]
    return [_request("loss", f"document-{len(text)}", text[:1], (text[1:],)) for text in texts]


def _at_the_edge(rng: np.random.Generator, n_tokens: int, context: int) -> list[Request]:
    """The last position is used, and the token after it is predicted."""
    whole = _draw(rng, n_tokens, context + 1)
    return [
        _request("choice", "edge-one-token", whole[:context], tuple((i,) for i in whole[-1:])),
        _request("choice", "edge-longer", whole[: context - 1], (whole[context - 1 :], _draw(rng, n_tokens, 1))),
        _request("loss", "edge-loss", whole[:1], (whole[1:],)),
    ]


def _unscoreable(rng: np.random.Generator, n_tokens: int, context: int) -> list[Request]:
    """Invalid wherever they stand, and no reason for any other row to change."""
    return [
        _request("choice", "invalid-no-prompt", (), _letters(rng, n_tokens)),
        _request("choice", "invalid-empty-choice", _draw(rng, n_tokens, 3), ((1,), ())),
        _request("generation", "invalid-too-long", _draw(rng, n_tokens, context)),
    ]


def _sampled(rng: np.random.Generator, n_tokens: int, context: int) -> list[Request]:
    """Several samples of one prompt, hot enough to differ."""
    prompts = [_draw(rng, n_tokens, length) for length in _SAMPLED if length < context]
    requests = [_request("generation", f"sampled-{len(prompt)}", prompt) for prompt in prompts]
    return [replace(request, sampling=_SAMPLING) for request in requests]


def _letters(rng: np.random.Generator, n_tokens: int) -> tuple[Ids, ...]:
    """Four choices of one token."""
    return tuple(_draw(rng, n_tokens, 1) for _ in range(4))


def _draw(rng: np.random.Generator, n_tokens: int, length: int) -> Ids:
    return tuple(rng.integers(0, n_tokens, size=length).tolist())


def _request(kind: str, item_id: str, prompt: Ids, continuations: tuple[Ids, ...] = ()) -> Request:
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
