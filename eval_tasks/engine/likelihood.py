"""Loss and choice requests in, log-probabilities of their continuations out.

The one-token choices of a request share one forward; longer ones have one each, over the shared tiles of the prompt.
The head runs where a continuation token is predicted and nowhere else.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from eval_tasks.engine.forward import Body, Part
from eval_tasks.engine.head import Head
from eval_tasks.engine.prefix import PrefixCache, chain_of, shared_chains
from eval_tasks.engine.runtime import TILE
from eval_tasks.records import Request, Response

if TYPE_CHECKING:
    import torch

    from eval_tasks.engine.prefix import Chain


@dataclass(slots=True)
class _Sequence:
    """Token ids to read, and per position to predict from: which continuation tokens of its request are wanted."""

    request: int
    ids: tuple[int, ...]
    wanted: list[tuple[int, list[tuple[int, int]]]]
    """(position, [(continuation, index in it)]), by position."""
    chain: Chain = ()


@dataclass(slots=True)
class _Found:
    """What a request has so far: per continuation its tokens' log-probabilities."""

    values: list[list[float]]
    finite: bool = True
    seconds: float = 0.0


@dataclass(slots=True)
class _Queue:
    """Hidden rows that wait until they fill a block of the head."""

    rows: list[torch.Tensor] = field(default_factory=list)
    owners: list[tuple[int, list[tuple[int, int]]]] = field(default_factory=list)


def score(
    requests: Sequence[Request], *, body: Body, head: Head, prefix: PrefixCache | None, rows_per_forward: int
) -> list[Response]:
    """Responses in the order of `requests`, all of which can run (`validity.problem_of`)."""
    found = [_Found([[0.0] * len(c) for c in request.continuations]) for request in requests]
    sequences = [sequence for i, request in enumerate(requests) for sequence in _sequences(i, request)]
    if prefix is not None:
        _share(sequences, prefix, requests)
    sequences.sort(key=lambda s: s.ids)
    queue = _Queue()
    for start in range(0, len(sequences), rows_per_forward):
        began = time.perf_counter()
        chunk = sequences[start : start + rows_per_forward]
        _forward(chunk, body, prefix, queue)
        last = start + rows_per_forward >= len(sequences)
        _predict(queue, head, requests, found, flush=last)
        for sequence in chunk:
            found[sequence.request].seconds += (time.perf_counter() - began) / len(chunk)
    return [_response(request, result) for request, result in zip(requests, found, strict=True)]


def _sequences(index: int, request: Request) -> list[_Sequence]:
    """The forwards of a request: one for all one-token continuations, one for each longer one."""
    prompt = request.prompt_ids
    last = len(prompt) - 1
    short = [(c, 0) for c, ids in enumerate(request.continuations) if len(ids) == 1]
    sequences = [_Sequence(index, prompt, [(last, short)])] if short else []
    for c, ids in enumerate(request.continuations):
        if len(ids) > 1:
            wanted = [(last + k, [(c, k)]) for k in range(len(ids))]
            sequences.append(_Sequence(index, prompt + ids[:-1], wanted))
    return sequences


def _share(sequences: Sequence[_Sequence], prefix: PrefixCache, requests: Sequence[Request]) -> None:
    """Give each sequence the chain it has in common with another one, with what is kept, or by the plan's hint."""
    # Hidden states are needed from the first predicted position on: only tiles before it can come from the cache.
    chains = [chain_of(s.ids, s.wanted[0][0]) for s in sequences]
    for sequence, chain, shared in zip(sequences, chains, shared_chains(chains), strict=True):
        hinted = requests[sequence.request].shared_prefix_tokens // TILE
        sequence.chain = chain[: max(len(shared), hinted, prefix.n_kept(chain))]


def _forward(chunk: Sequence[_Sequence], body: Body, prefix: PrefixCache | None, queue: _Queue) -> None:
    """Run one forward; append the hidden rows that are wanted."""
    pasts: list[tuple[torch.Tensor, ...]] = [()] * len(chunk)
    if prefix is not None:
        prefix.prepare([(s.ids, s.chain) for s in chunk])
        pasts = [prefix.past(s.chain) for s in chunk]
    parts = [Part(ids=s.ids[len(past) * TILE :], past=past) for s, past in zip(chunk, pasts, strict=True)]
    for sequence, part, hidden in zip(chunk, parts, body.prefill(parts), strict=True):
        offset = len(part.past) * TILE
        first = sequence.wanted[0][0] - offset
        queue.rows.append(hidden[first : sequence.wanted[-1][0] - offset + 1].clone())
        queue.owners += [(sequence.request, places) for _, places in sequence.wanted]


def _predict(queue: _Queue, head: Head, requests: Sequence[Request], found: Sequence[_Found], *, flush: bool) -> None:
    """Run the head over all full blocks of waiting rows, and the rest too when `flush`."""
    import torch

    n = len(queue.owners) if flush else len(queue.owners) // head.rows * head.rows
    if n == 0:
        return
    rows = torch.cat(queue.rows)
    owners, queue.owners = queue.owners[:n], queue.owners[n:]
    queue.rows = [rows[n:].clone()]
    targets = [[requests[r].continuations[c][k] for c, k in places] for r, places in owners]
    for (request, places), logprobs in zip(owners, head.logprobs_of(rows[:n], targets), strict=True):
        if logprobs is None:
            found[request].finite = False
            continue
        for (c, k), value in zip(places, logprobs, strict=True):
            found[request].values[c][k] = value


def _response(request: Request, found: _Found) -> Response:
    ok = found.finite
    return Response(
        benchmark_id=request.benchmark_id,
        item_id=request.item_id,
        status="ok" if ok else "invalid",
        reason="" if ok else "non_finite_logits",
        prompt_digest=request.prompt_digest,
        logprobs=tuple(sum(values) for values in found.values) if ok else (),
        token_logprobs=tuple(map(tuple, found.values)) if ok else (),
        n_prompt_tokens=len(request.prompt_ids),
        n_output_tokens=sum(map(len, request.continuations)),
        n_bytes=request.n_bytes,
        prompt_truncated=request.prompt_truncated,
        latency_ms=found.seconds * 1000,
    )
