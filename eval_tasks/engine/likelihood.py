"""Loss and choice requests in, log-probabilities of their continuations out.

A prompt is read once and predicts the first token of every continuation; longer continuations are read after it, each
from where the prompt ends.
The head runs where a continuation token is predicted and nowhere else.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from eval_tasks.engine.forward import Body, Part
from eval_tasks.engine.head import Head
from eval_tasks.engine.prefix import PrefixPaths
from eval_tasks.records import Request, Response

if TYPE_CHECKING:
    import torch


@dataclass(slots=True)
class _Sequence:
    """Token ids to read, and per position to predict from: which continuation tokens of its request are wanted."""

    request: int
    ids: tuple[int, ...]
    wanted: list[tuple[int, list[tuple[int, int]]]]
    """(position, [(continuation, index in it)]), by position."""


@dataclass(slots=True)
class Found:
    """What a request has so far: per continuation its tokens' log-probabilities, and whether each was the best."""

    values: list[list[float]]
    greedy: list[bool]
    finite: bool = True
    seconds: float = 0.0


@dataclass(slots=True)
class _Piece:
    """Tokens of a sequence that one forward reads, and what is wanted of them."""

    sequence: _Sequence
    part: Part
    wanted: list[tuple[int, list[tuple[int, int]]]]
    """As in _Sequence, by position within the piece."""


@dataclass(slots=True)
class _Queue:
    """Hidden rows that wait until they fill a block of the head."""

    rows: list[torch.Tensor] = field(default_factory=list)
    owners: list[tuple[int, list[tuple[int, int]]]] = field(default_factory=list)


def score(
    requests: Sequence[Request], *, body: Body, head: Head, paths: PrefixPaths, tokens_per_forward: int
) -> list[Response]:
    """Responses in the order of `requests`, all of which can run (`validity.problem_of`)."""
    found = [_nothing(request) for request in requests]
    sequences = [sequence for i, request in enumerate(requests) for sequence in _sequences(i, request)]
    queue = _Queue()
    try:
        for pieces in _forwards(sequences, paths, tokens_per_forward):
            began = time.perf_counter()
            _read(pieces, body, queue)
            _predict(queue, head, requests, found, flush=False)
            n_tokens = sum(len(piece.part.ids) for piece in pieces)
            for piece in pieces:
                share = len(piece.part.ids) / n_tokens
                found[piece.sequence.request].seconds += (time.perf_counter() - began) * share
        _predict(queue, head, requests, found, flush=True)
    except BaseException:
        paths.clear()
        raise
    paths.trim()
    return [response_of(request, result) for request, result in zip(requests, found, strict=True)]


def _nothing(request: Request) -> Found:
    return Found([[0.0] * len(c) for c in request.continuations], [True] * len(request.continuations))


def _sequences(index: int, request: Request) -> list[_Sequence]:
    """What to read for a request: its prompt, which predicts every continuation's first token, then each longer one.

    A single continuation is read along with the prompt.
    """
    prompt = request.prompt_ids
    last = len(prompt) - 1
    if len(request.continuations) == 1:
        (ids,) = request.continuations
        return [_Sequence(index, prompt + ids[:-1], [(last + k, [(0, k)]) for k in range(len(ids))])]
    first = _Sequence(index, prompt, [(last, [(c, 0) for c in range(len(request.continuations))])])
    longer = [
        _Sequence(index, prompt + ids[:-1], [(last + k, [(c, k)]) for k in range(1, len(ids))])
        for c, ids in enumerate(request.continuations)
        if len(ids) > 1
    ]
    return [first, *longer]


def _forwards(sequences: Sequence[_Sequence], paths: PrefixPaths, n_tokens: int) -> Iterator[list[_Piece]]:
    """The sequences' tokens that are still to be read, `n_tokens` at a time; a sequence may span several forwards."""
    pieces: list[_Piece] = []
    room = n_tokens
    for index in paths.order([s.ids for s in sequences]):
        sequence = sequences[index]
        cache, start = paths.enter(sequence.ids, sequence.wanted[0][0])
        while start < len(sequence.ids):
            end = min(len(sequence.ids), start + room)
            wanted = [(at - start, places) for at, places in sequence.wanted if start <= at < end]
            pieces.append(_Piece(sequence, Part(ids=sequence.ids[start:end], start=start, cache=cache), wanted))
            room -= end - start
            start = end
            if room == 0:
                yield pieces
                pieces, room = [], n_tokens
    if pieces:
        yield pieces


def _read(pieces: Sequence[_Piece], body: Body, queue: _Queue) -> None:
    """Run one forward; append the hidden rows that are wanted."""
    hidden, _ = body.forward([piece.part for piece in pieces])
    rows: list[int] = []
    row = 0
    for piece in pieces:
        rows += [row + at for at, _ in piece.wanted]
        queue.owners += [(piece.sequence.request, places) for _, places in piece.wanted]
        row += len(piece.part.ids)
    if rows:
        queue.rows.append(hidden[rows])


def _predict(queue: _Queue, head: Head, requests: Sequence[Request], found: Sequence[Found], *, flush: bool) -> None:
    """Run the head over all full blocks of waiting rows, and the rest too when `flush`."""
    import torch

    n = len(queue.owners) if flush else len(queue.owners) // head.rows * head.rows
    if n == 0:
        return
    rows = torch.cat(queue.rows)
    owners, queue.owners = queue.owners[:n], queue.owners[n:]
    queue.rows = [rows[n:]]
    targets = [[requests[r].continuations[c][k] for c, k in places] for r, places in owners]
    for (request, places), logprobs in zip(owners, head.logprobs_of(rows[:n], targets), strict=True):
        if logprobs is None:
            found[request].finite = False
            continue
        for (c, k), (value, is_best) in zip(places, logprobs, strict=True):
            found[request].values[c][k] = value
            found[request].greedy[c] &= is_best


def response_of(request: Request, found: Found) -> Response:
    """The row of a request whose continuations were all predicted."""
    ok = found.finite
    return Response(
        benchmark_id=request.benchmark_id,
        item_id=request.item_id,
        status="ok" if ok else "invalid",
        reason="" if ok else "non_finite_logits",
        prompt_digest=request.prompt_digest,
        logprobs=tuple(sum(values) for values in found.values) if ok else (),
        token_logprobs=tuple(map(tuple, found.values)) if ok else (),
        greedy=tuple(found.greedy) if ok and request.kind == "choice" else (),
        n_prompt_tokens=len(request.prompt_ids),
        n_output_tokens=sum(map(len, request.continuations)),
        n_bytes=request.n_bytes,
        prompt_truncated=request.prompt_truncated,
        latency_ms=found.seconds * 1000,
    )
