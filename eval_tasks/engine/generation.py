"""Generation requests in, greedy continuations out: a fixed number of slots, each refilled when its item has ended.

A slot's row depends on its own tokens alone: linear layers give a row the same bits at any number of rows, attention
is one call per row over its own cache. Nothing of the checkpoint's generation_config is read but its EOS ids.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from eval_tasks.engine.forward import Body, Part, n_tiles
from eval_tasks.engine.head import Head
from eval_tasks.engine.prefix import PrefixCache, chain_of, shared_chains
from eval_tasks.engine.runtime import TILE
from eval_tasks.engine.stopping import Stopper
from eval_tasks.records import EngineTuning, Request, Response
from eval_tasks.tokenization import Tokenizer

if TYPE_CHECKING:
    import torch

    from eval_tasks.engine.prefix import Chain


class _Slot:
    """One item that is being written."""

    def __init__(self, index: int, request: Request, chain: Chain, tokenizer: Tokenizer, context: int) -> None:
        self.index = index
        self.request = request
        self.chain = chain
        self.room = min(request.max_tokens, context - len(request.prompt_ids))
        self.stopper = Stopper(tokenizer, request.stops, self.room)
        self.logprobs: list[float] = []
        self.cache: torch.Tensor | None = None
        self.seconds = 0.0
        self.finite = True

    @property
    def position(self) -> int:
        """Where the last written token goes."""
        return len(self.request.prompt_ids) + len(self.stopper.ids) - 1

    @property
    def ended(self) -> bool:
        return bool(self.stopper.reason) or not self.finite

    def take(self, best: tuple[int, float] | None) -> None:
        """One more token, or none when the logits were not finite."""
        if best is None:
            self.finite = False
            return
        self.logprobs.append(best[1])
        self.stopper.add(best[0])


class Generator:
    """Runs generation requests that can run (`validity.problem_of`)."""

    def __init__(
        self,
        *,
        body: Body,
        head: Head,
        tokenizer: Tokenizer,
        prefix: PrefixCache | None,
        tuning: EngineTuning,
        context: int,
    ) -> None:
        self._body = body
        self._head = head
        self._tokenizer = tokenizer
        self._prefix = prefix
        self._tuning = tuning
        self._context = context

    def generate(self, requests: Sequence[Request]) -> list[Response]:
        """Responses in the order of `requests`."""
        waiting = deque(self._slots(requests))
        active: list[_Slot] = []
        responses: dict[int, Response] = {}
        while waiting or active:
            while waiting and len(active) < self._tuning.decode_rows:
                room = min(self._tuning.decode_rows - len(active), self._tuning.rows_per_forward, len(waiting))
                started = [waiting.popleft() for _ in range(room)]
                self._timed(started, self._prefill)
                active += started
                active = self._retire(active, responses)
            if active:
                self._timed(active, self._decode)
                active = self._retire(active, responses)
        return [responses[i] for i in range(len(requests))]

    def _slots(self, requests: Sequence[Request]) -> list[_Slot]:
        chains: list[Chain] = [()] * len(requests)
        if self._prefix is not None:
            whole = [chain_of(r.prompt_ids, len(r.prompt_ids) - 1) for r in requests]
            for i, (chain, shared) in enumerate(zip(whole, shared_chains(whole), strict=True)):
                hinted = requests[i].shared_prefix_tokens // TILE
                chains[i] = chain[: max(len(shared), hinted, self._prefix.n_kept(chain))]
        return [
            _Slot(i, request, chain, self._tokenizer, self._context)
            for i, (request, chain) in enumerate(zip(requests, chains, strict=True))
        ]

    def _timed(self, slots: Sequence[_Slot], work: Callable[[Sequence[_Slot]], None]) -> None:
        began = time.perf_counter()
        work(slots)
        for slot in slots:
            slot.seconds += (time.perf_counter() - began) / len(slots)

    def _prefill(self, slots: Sequence[_Slot]) -> None:
        """Read the prompts and write the first token of each."""
        import torch

        if self._prefix is not None:
            self._prefix.prepare([(s.request.prompt_ids, s.chain) for s in slots])
        parts = []
        for slot in slots:
            past = self._prefix.past(slot.chain) if self._prefix is not None else ()
            ids = slot.request.prompt_ids
            slot.cache = self._body.key_values(n_tiles(len(ids) + 1))
            parts.append(Part(ids=ids[len(past) * TILE :], past=past, keep=slot.cache))
        last = torch.stack([hidden[-1] for hidden in self._body.prefill(parts)])
        for slot, best in zip(slots, self._head.greedy(last), strict=True):
            slot.take(best)

    def _decode(self, slots: Sequence[_Slot]) -> None:
        """Read the last token of each slot and write the next one."""
        caches = [self._roomy_cache(slot) for slot in slots]
        hidden = self._body.decode([s.stopper.ids[-1] for s in slots], [s.position for s in slots], caches)
        for slot, best in zip(slots, self._head.greedy(hidden), strict=True):
            slot.take(best)

    def _roomy_cache(self, slot: _Slot) -> torch.Tensor:
        """The slot's cache, grown by half when its next position is beyond it, never past what the item may need."""
        cache = slot.cache
        if cache is None:
            raise RuntimeError(f"item {slot.request.item_id} is decoded before its prompt was read")
        tiles = cache.shape[3] // TILE
        if slot.position >= tiles * TILE:
            most = n_tiles(len(slot.request.prompt_ids) + slot.room)
            grown = self._body.key_values(max(tiles + 1, min(most, tiles + tiles // 2)))
            grown[:, :, :, : tiles * TILE] = cache
            slot.cache = cache = grown
        return cache

    def _retire(self, active: Sequence[_Slot], responses: dict[int, Response]) -> list[_Slot]:
        """Write the responses of the slots that have ended; the others."""
        for slot in active:
            if slot.ended:
                slot.cache = None
                responses[slot.index] = _response(slot)
        return [slot for slot in active if not slot.ended]


def _response(slot: _Slot) -> Response:
    request, stopper = slot.request, slot.stopper
    if not slot.finite:
        return Response(
            benchmark_id=request.benchmark_id,
            item_id=request.item_id,
            status="invalid",
            reason="non_finite_logits",
            prompt_digest=request.prompt_digest,
            n_prompt_tokens=len(request.prompt_ids),
            prompt_truncated=request.prompt_truncated,
            latency_ms=slot.seconds * 1000,
        )
    return Response(
        benchmark_id=request.benchmark_id,
        item_id=request.item_id,
        status="ok",
        prompt_digest=request.prompt_digest,
        output=stopper.text(),
        output_ids=tuple(stopper.ids),
        finish_reason=stopper.reason,
        logprobs=(sum(slot.logprobs),),
        token_logprobs=(tuple(slot.logprobs),),
        n_prompt_tokens=len(request.prompt_ids),
        n_output_tokens=len(stopper.ids),
        prompt_truncated=request.prompt_truncated,
        output_truncated=stopper.reason == "length",
        latency_ms=slot.seconds * 1000,
    )
