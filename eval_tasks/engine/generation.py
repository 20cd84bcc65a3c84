"""Generation requests in, greedy continuations out: a fixed number of slots, each refilled when its item has ended.

One forward reads the prompts of the items that begin and the last token of every other.
A slot's row depends on its own tokens alone: linear layers give a row the same bits at any number of rows, attention
is one call per row over its own cache. Nothing of the checkpoint's generation_config is read but its EOS ids.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from eval_tasks.engine.forward import Body, Decoded, Part, room_for
from eval_tasks.engine.head import Head
from eval_tasks.engine.prefix import PrefixPaths
from eval_tasks.engine.stopping import Stopper
from eval_tasks.records import EngineTuning, Request, Response
from eval_tasks.tokenization import Tokenizer

if TYPE_CHECKING:
    import torch


class _Slot:
    """One item that is being written."""

    def __init__(self, index: int, request: Request, tokenizer: Tokenizer, context: int) -> None:
        self.index = index
        self.request = request
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
        paths: PrefixPaths,
        tuning: EngineTuning,
        context: int,
    ) -> None:
        self._body = body
        self._head = head
        self._tokenizer = tokenizer
        self._paths = paths
        self._tuning = tuning
        self._context = context

    def generate(self, requests: Sequence[Request]) -> list[Response]:
        """Responses in the order of `requests`."""
        order = self._paths.order([request.prompt_ids for request in requests])
        waiting = deque(_Slot(i, requests[i], self._tokenizer, self._context) for i in order)
        active: list[_Slot] = []
        responses: dict[int, Response] = {}
        while waiting or active:
            started = self._next(waiting, active)
            began = time.perf_counter()
            self._step(started, active)
            active += started
            for slot in active:
                slot.seconds += (time.perf_counter() - began) / len(active)
            active = self._retire(active, responses)
        self._paths.trim()
        return [responses[i] for i in range(len(requests))]

    def _next(self, waiting: deque[_Slot], active: Sequence[_Slot]) -> list[_Slot]:
        """The items to begin beside the `active` ones, as many prompts as one forward is to read, at least one."""
        started: list[_Slot] = []
        n_tokens = len(active)
        while waiting and len(active) + len(started) < self._tuning.decode_rows:
            n_tokens += len(waiting[0].request.prompt_ids)
            if started and n_tokens > self._tuning.tokens_per_forward:
                break
            started.append(waiting.popleft())
        return started

    def _step(self, started: Sequence[_Slot], active: Sequence[_Slot]) -> None:
        """Read the prompts of `started` and the last token of each of `active`; write the next token of each."""
        import torch

        parts = [self._part(slot) for slot in started]
        decoded = [Decoded(slot.stopper.ids[-1], slot.position, self._roomy_cache(slot)) for slot in active]
        try:
            read, hidden = self._body.forward(parts, decoded)
        except BaseException:
            self._paths.clear()
            raise
        last = [end - 1 for end in itertools.accumulate(len(part.ids) for part in parts)]
        if parts:
            hidden = torch.cat((read[last], hidden))
        for slot, best in zip((*started, *active), self._head.greedy(hidden), strict=True):
            slot.take(best)

    def _part(self, slot: _Slot) -> Part:
        """What is to be read of a prompt."""
        ids = slot.request.prompt_ids
        slot.cache = self._body.key_values(room_for(len(ids) + 1))
        if not self._paths.shared:
            return Part(ids=ids, start=0, cache=slot.cache)
        cache, start = self._paths.enter(ids, len(ids) - 1)
        return Part(ids=ids[start:], start=start, cache=cache, keep=slot.cache)

    def _roomy_cache(self, slot: _Slot) -> torch.Tensor:
        """The slot's cache, grown by half when its next position is beyond it, never past what the item may need."""
        cache = slot.cache
        if cache is None:
            raise RuntimeError(f"item {slot.request.item_id} is decoded before its prompt was read")
        room = cache.shape[3]
        if slot.position >= room:
            most = room_for(len(slot.request.prompt_ids) + slot.room)
            grown = self._body.key_values(max(room_for(room + 1), min(most, room_for(room + room // 2))))
            grown[:, :, :, :room] = cache
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
