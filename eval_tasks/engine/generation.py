"""Generation requests in, continuations out, greedy or sampled: so many rows, each refilled when its output has ended.

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
from eval_tasks.engine.outputs import Item, Slot
from eval_tasks.engine.prefix import PrefixPaths
from eval_tasks.records import EngineTuning, Request, Response
from eval_tasks.tokenization import Tokenizer

if TYPE_CHECKING:
    import torch

_MEBIBYTE = 1024 * 1024


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
        waiting = deque(Item(i, requests[i], self._tokenizer, self._context) for i in order)
        begun: deque[Slot] = deque()
        active: list[Slot] = []
        responses: dict[int, Response] = {}
        while waiting or begun or active:
            while begun and len(active) < self._tuning.decode_rows:
                active.append(begun.popleft())
                active[-1].item.hand_over(active[-1], self._copied)
            started = [] if begun else self._next(waiting, active)
            began = time.perf_counter()
            self._step(started, active)
            written = [*(item.slots for item in started), *([slot] for slot in active)]
            for slots in written:
                slots[0].item.seconds += (time.perf_counter() - began) / len(written)
            begun.extend(slot for item in started for slot in item.slots if not slot.ended)
            active = self._retire(written, active, responses)
        self._paths.trim()
        return [responses[i] for i in range(len(requests))]

    def _next(self, waiting: deque[Item], active: Sequence[Slot]) -> list[Item]:
        """The items to begin beside the `active` outputs, as many prompts as one forward is to read, at least one.

        The samples of the last one may be more than there are free rows: some of them wait with their first token.
        """
        started: list[Item] = []
        n_outputs = n_tokens = len(active)
        while waiting and n_outputs < self._tuning.decode_rows:
            n_tokens += len(waiting[0].request.prompt_ids)
            if started and n_tokens > self._tuning.tokens_per_forward:
                break
            started.append(waiting.popleft())
            n_outputs += len(started[-1].slots)
        return started

    def _step(self, started: Sequence[Item], active: Sequence[Slot]) -> None:
        """Read the prompts of `started` and the last token of each of `active`; write the next token of each output."""
        import torch

        parts = [self._part(item) for item in started]
        decoded = [Decoded(slot.stopper.ids[-1], slot.position, self._roomy_cache(slot)) for slot in active]
        try:
            read, hidden = self._body.forward(parts, decoded, graph_bytes=self._tuning.graph_mb * _MEBIBYTE)
        except BaseException:
            self._paths.clear()
            raise
        last = [end - 1 for end in itertools.accumulate(len(part.ids) for part in parts)]
        if parts:
            hidden = torch.cat((read[last], hidden))
        self._write(hidden, [*(item.slots for item in started), *([slot] for slot in active)])

    def _write(self, hidden: torch.Tensor, outputs: Sequence[Sequence[Slot]]) -> None:
        """The next token of the outputs that each row of `hidden` has: one greedy output, or samples of one item."""
        sampled = [row for row, slots in enumerate(outputs) if slots[0].sampler is not None]
        greedy = [row for row, slots in enumerate(outputs) if slots[0].sampler is None]
        if greedy:
            found = self._head.greedy(hidden[greedy] if sampled else hidden)
            for row, best in zip(greedy, found, strict=True):
                outputs[row][0].take(best)
        if sampled:
            for row, logprobs in zip(sampled, self._head.rows_of(hidden[sampled]), strict=True):
                for slot in outputs[row]:
                    slot.draw(logprobs)

    def _part(self, item: Item) -> Part:
        """What is to be read of a prompt."""
        ids = item.request.prompt_ids
        item.cache = self._body.key_values(room_for(len(ids) + 1))
        if not self._paths.shared:
            return Part(ids=ids, start=0, cache=item.cache)
        cache, start = self._paths.enter(ids, len(ids) - 1)
        return Part(ids=ids[start:], start=start, cache=cache, keep=item.cache)

    def _copied(self, cache: torch.Tensor, n_tokens: int) -> torch.Tensor:
        """A cache of its own with the first `n_tokens` of another one."""
        copy = self._body.key_values(room_for(n_tokens + 1))
        copy[:, :, :, :n_tokens] = cache[:, :, :, :n_tokens]
        return copy

    def _roomy_cache(self, slot: Slot) -> torch.Tensor:
        """The slot's cache, grown by half when its next position is beyond it, never past what the item may need."""
        cache = slot.cache
        if cache is None:
            raise RuntimeError(f"item {slot.item.request.item_id} is decoded before its prompt was read")
        room = cache.shape[3]
        if slot.position >= room:
            most = room_for(len(slot.item.request.prompt_ids) + slot.item.room)
            grown = self._body.key_values(max(room_for(room + 1), min(most, room_for(room + room // 2))))
            grown[:, :, :, :room] = cache
            slot.cache = cache = grown
        return cache

    def _retire(
        self, written: Sequence[Sequence[Slot]], active: Sequence[Slot], responses: dict[int, Response]
    ) -> list[Slot]:
        """Write the responses of the items whose outputs have all ended; the active outputs that go on."""
        for slots in written:
            item = slots[0].item
            for slot in slots:
                if slot.ended:
                    slot.cache = None
            if item.ended:
                item.cache = None
                responses[item.index] = item.response()
        return [slot for slot in active if not slot.ended]
