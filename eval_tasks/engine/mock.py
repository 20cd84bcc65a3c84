"""Requests in, made-up responses out: for tests of the whole path without a model, a GPU or torch.

An answer is a function of the run's seed and the item's id alone; a share `mock_accuracy` of the items is answered
right, where a gold answer says what right is. Every row carries the mark. Nothing here is a measurement.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from eval_tasks.digests import digest_value
from eval_tasks.engine.validity import invalid_response, problem_of
from eval_tasks.records import EngineConfig, EngineTuning, Request, Response, Sample
from eval_tasks.records.engine import MOCK_MARK
from eval_tasks.tokenization import Tokenizer

_WRONG = "I do not know."
_BEST, _OTHERS = -0.01, -40.0  # apart far enough that no length of a choice can turn them round


class MockEngine:
    """Stands where `Engine` would. `seed` is the run's; `target_of(benchmark_id, item_id)` an item's gold answer.

    A choice item's gold index gets the highest logprob, or another one does; a generation is the gold answer as the
    data has it (the first of several references), or nonsense, and is never cut; a loss is about ``ln(mock_accuracy)``
    per token. An item without a gold answer gets nonsense.
    """

    def __init__(
        self,
        config: EngineConfig,
        tuning: EngineTuning,
        tokenizer: Tokenizer,
        *,
        context: int,
        seed: int,
        target_of: Callable[[str, str], object],
    ) -> None:
        self.config = config
        self.tuning = tuning
        self.context = context
        self._tokenizer = tokenizer
        self._seed = seed
        self._target_of = target_of
        self._accuracy = config.mock_accuracy or 0.0

    def respond(self, requests: Sequence[Request]) -> list[Response]:
        """One response per request, in order. What the engine would refuse is ``invalid`` for the same reason."""
        return [self._respond(request) for request in requests]

    def _respond(self, request: Request) -> Response:
        problem = problem_of(request, context=self.context, n_embeddings=self._tokenizer.vocab_size)
        if problem:
            return invalid_response(request, problem)
        row = Response(
            benchmark_id=request.benchmark_id,
            item_id=request.item_id,
            status="ok",
            reason=MOCK_MARK,
            prompt_digest=request.prompt_digest,
            n_prompt_tokens=len(request.prompt_ids),
            n_output_tokens=sum(map(len, request.continuations)),
            n_bytes=request.n_bytes,
            prompt_truncated=request.prompt_truncated,
        )
        if request.kind != "generation":
            logprobs = self._loss(request) if request.kind == "loss" else self._choice(request)
            row = replace(row, logprobs=tuple(map(math.fsum, logprobs)), token_logprobs=logprobs)
            return replace(row, greedy=self._greedy(request, row.logprobs)) if request.kind == "choice" else row
        if request.sampling is None:
            text, ids = self._text(request, 0)
            logprobs = (self._per_token(request, len(ids), 0),)
            return replace(
                row,
                output=text,
                output_ids=ids,
                n_output_tokens=len(ids),
                finish_reason="stop",
                logprobs=tuple(map(math.fsum, logprobs)),
                token_logprobs=logprobs,
            )
        samples = tuple(self._sample(request, number) for number in range(request.sampling.samples))
        return replace(row, samples=samples, n_output_tokens=sum(len(sample.output_ids) for sample in samples))

    def _choice(self, request: Request) -> tuple[tuple[float, ...], ...]:
        """Logprobs of each choice's tokens: one choice far ahead of the others, each a little behind the one before."""
        n_choices = len(request.continuations)
        gold = self._target_of(request.benchmark_id, request.item_id)
        index = gold[0] if isinstance(gold, list | tuple) and gold else gold
        best = index if isinstance(index, int) and 0 <= index < n_choices else 0
        if not self._is_right(request, 0) and n_choices > 1:
            best = (best + 1 + int(self._draw(request, "choice") * (n_choices - 1))) % n_choices
        sums = [_BEST if k == best else _OTHERS * (1 + k / 10) for k in range(n_choices)]
        return tuple((total / len(ids),) * len(ids) for total, ids in zip(sums, request.continuations, strict=True))

    def _greedy(self, request: Request, sums: Sequence[float]) -> tuple[bool, ...]:
        """The best choice is what greedy decoding would write; a lone one is where the item is answered right."""
        if len(sums) == 1:
            return (self._is_right(request, 0),)
        return tuple(value == max(sums) for value in sums)

    def _loss(self, request: Request) -> tuple[tuple[float, ...], ...]:
        return (self._per_token(request, len(request.continuations[0]), 0),)

    def _per_token(self, request: Request, n_tokens: int, sample: int) -> tuple[float, ...]:
        mean = math.log(max(self._accuracy, 1e-6)) - 0.01
        return (mean * (0.5 + self._draw(request, f"loss {sample}")),) * n_tokens

    def _sample(self, request: Request, number: int) -> Sample:
        text, ids = self._text(request, number)
        logprobs = self._per_token(request, len(ids), number)
        return Sample(output=text, output_ids=ids, finish_reason="stop", token_logprobs=logprobs)

    def _text(self, request: Request, sample: int) -> tuple[str, tuple[int, ...]]:
        target = self._target_of(request.benchmark_id, request.item_id)
        if isinstance(target, list | tuple) and target:
            target = target[0]
        right = target is not None and self._is_right(request, sample)
        text = _WRONG if not right else target if isinstance(target, str) else json.dumps(target)
        return text, tuple(self._tokenizer.encode(text))

    def _is_right(self, request: Request, sample: int) -> bool:
        return self._draw(request, f"right {sample}") < self._accuracy

    def _draw(self, request: Request, what: str) -> float:
        """A number in [0, 1) of the run's seed, the item's id and what it is drawn for."""
        return int(digest_value([self._seed, request.item_id, what])[:13], 16) / 16**13
