"""What is being written: one `Item` per generation request, one `Slot` per output of it. Computes no forward.

All samples of an item begin from one reading of its prompt: their first tokens are drawn from the same row, and each
gets the prompt's keys and values when a row of the engine is free for it, the last one the buffer itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from eval_tasks.engine.sampling import Row, Sampler
from eval_tasks.engine.stopping import Stopper
from eval_tasks.records import Request, Response, Sample
from eval_tasks.tokenization import Tokenizer

if TYPE_CHECKING:
    import torch


class Slot:
    """One output of an item; `sampler` is None for the greedy one."""

    def __init__(self, item: Item, stopper: Stopper, sampler: Sampler | None) -> None:
        self.item = item
        self.stopper = stopper
        self.sampler = sampler
        self.logprobs: list[float] = []
        self.cache: torch.Tensor | None = None
        self.finite = True

    @property
    def position(self) -> int:
        """Where the last written token goes."""
        return len(self.item.request.prompt_ids) + len(self.stopper.ids) - 1

    @property
    def ended(self) -> bool:
        """Whether nothing more is to be written."""
        return bool(self.stopper.reason) or not self.finite

    def take(self, best: tuple[int, float] | None) -> None:
        """One more token and its log-probability, or none when the logits were not finite."""
        if best is None:
            self.finite = False
            return
        self.logprobs.append(best[1])
        self.stopper.add(best[0])

    def draw(self, row: Row | None) -> None:
        """One more token, drawn from a log-softmax row, or none when the logits were not finite."""
        if row is None or self.sampler is None:
            self.take(None)
            return
        token = self.sampler.draw(row, len(self.stopper.ids))
        self.take((token, float(row[token])))


class Item:
    """A request that is being answered, by one greedy output or by its declared samples. `index`: its place."""

    def __init__(self, index: int, request: Request, tokenizer: Tokenizer, context: int) -> None:
        self.index = index
        self.request = request
        self.room = min(request.max_tokens, context - len(request.prompt_ids))
        self.slots = [
            Slot(self, Stopper(tokenizer, request.stops, self.room, request.reasoning), sampler)
            for sampler in _samplers(request)
        ]
        self.cache: torch.Tensor | None = None
        self.seconds = 0.0

    @property
    def ended(self) -> bool:
        """Whether all outputs are there."""
        return all(slot.ended for slot in self.slots)

    def hand_over(self, slot: Slot, copied: Callable[[torch.Tensor, int], torch.Tensor]) -> None:
        """Give `slot` the keys and values of the prompt: the buffer itself when no other output waits for them."""
        if self.cache is None:
            raise RuntimeError(f"item {self.request.item_id} is decoded before its prompt was read")
        waiting = [other for other in self.slots if other.cache is None and not other.ended and other is not slot]
        if waiting:
            slot.cache = copied(self.cache, len(self.request.prompt_ids))
        else:
            slot.cache, self.cache = self.cache, None

    def response(self) -> Response:
        """The row, once all outputs have ended."""
        request, slots = self.request, self.slots
        row = Response(
            benchmark_id=request.benchmark_id,
            item_id=request.item_id,
            status="ok",
            prompt_digest=request.prompt_digest,
            n_prompt_tokens=len(request.prompt_ids),
            prompt_truncated=request.prompt_truncated,
            latency_ms=self.seconds * 1000,
        )
        if not all(slot.finite for slot in slots):
            return replace(row, status="invalid", reason="non_finite_logits")
        row = replace(
            row,
            n_output_tokens=sum(len(slot.stopper.ids) for slot in slots),
            output_truncated=any(slot.stopper.reason == "length" for slot in slots),
        )
        if request.sampling is not None:
            return replace(row, samples=tuple(map(_sample, slots)))
        (slot,) = slots
        return replace(
            row,
            output=slot.stopper.text(),
            output_ids=tuple(slot.stopper.ids),
            finish_reason=slot.stopper.reason,
            logprobs=(sum(slot.logprobs),),
            token_logprobs=(tuple(slot.logprobs),),
        )


def _samplers(request: Request) -> list[Sampler | None]:
    sampling = request.sampling
    if sampling is None:
        return [None]
    return [Sampler(sampling, seed=request.seed, item_id=request.item_id, sample=n) for n in range(sampling.samples)]


def _sample(slot: Slot) -> Sample:
    return Sample(
        output=slot.stopper.text(),
        output_ids=tuple(slot.stopper.ids),
        finish_reason=slot.stopper.reason,
        token_logprobs=tuple(slot.logprobs),
    )
