"""Items of one benchmark -> requests for one checkpoint's tokenizer. Knows no engine; loads no model."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from eval_tasks.errors import UserError
from eval_tasks.prompts.compose import Composer, Prompt
from eval_tasks.prompts.encoding import Encoded, Encoder, shared_prefix
from eval_tasks.prompts.few_shot import Shots
from eval_tasks.prompts.identity import prompt_digest
from eval_tasks.records import BenchmarkVersion, EngineConfig, Item, Request
from eval_tasks.records.benchmark import Policy
from eval_tasks.tokenization import Tokenizer

_NAMED_AT_MOST = 5


class PromptBuilder:
    """Builds the requests of one benchmark, batch by batch. `max_context` in tokens; `seed` is the run's.

    The engine configuration's chat and BOS policies win over the benchmark's, unless they are ``auto``.
    """

    def __init__(
        self,
        benchmark: BenchmarkVersion,
        few_shot_items: Sequence[Item],
        tokenizer: Tokenizer,
        engine: EngineConfig,
        max_context: int,
        seed: int = 0,
    ) -> None:
        template = benchmark.template
        self._benchmark = benchmark
        self._seed = seed
        self._context = min(max_context, engine.max_context or max_context)
        if benchmark.kind == "generation" and benchmark.max_tokens >= self._context:
            raise UserError(
                f"benchmark {benchmark.name!r} may write {benchmark.max_tokens} tokens, and the context has "
                f"{self._context}: no room is left for a prompt; use a model with more context, or lower max_tokens"
            )
        self._encoder = Encoder(tokenizer, _either(engine.bos, template.bos), self._context)
        chat = None
        if _either(engine.chat, template.chat) == "always" and benchmark.kind != "loss":
            if tokenizer.chat_template is None:
                raise UserError(
                    f"benchmark {benchmark.name!r} is to be put as a chat, and the checkpoint has no chat template; "
                    "set 'chat: never', or evaluate a checkpoint that has one"
                )
            chat = tokenizer.apply_chat
        shots = Shots(benchmark.name, benchmark.few_shot, few_shot_items)
        self._composer = Composer(benchmark.name, benchmark.kind, template, shots, chat)

    def requests(self, items: Sequence[Item]) -> list[Request]:
        """One request per item, in order.

        Raises UserError when a template fails, when prompts are too long and the benchmark refuses to cut them, or when
        a prompt opens a reasoning block that the benchmark takes for closed.
        """
        prompts = [self._composer.prompt(item) for item in items]
        self._refuse_open(items, prompts)
        encoded = self._encode(prompts)
        self._refuse_long(items, encoded)
        requests = [self._request(*each) for each in zip(items, prompts, encoded, strict=True)]
        return _with_shared_prefixes(requests)

    def _encode(self, prompts: Sequence[Prompt]) -> list[Encoded]:
        match self._benchmark.kind:
            case "choice":
                return self._encoder.choices(prompts)
            case "generation":
                return self._encoder.generations(prompts, self._benchmark.max_tokens)
            case "loss":
                return self._encoder.documents(prompts)

    def _request(self, item: Item, prompt: Prompt, encoded: Encoded) -> Request:
        benchmark = self._benchmark
        generates = benchmark.kind == "generation"
        stops = benchmark.template.stop if generates else ()
        max_tokens = benchmark.max_tokens if generates else 0
        sampling = benchmark.sampling
        reasoning = benchmark.scorer.reasoning if generates else None
        return Request(
            benchmark_id=benchmark.benchmark_id,
            item_id=item.item_id,
            kind=benchmark.kind,
            prompt=prompt.context,
            prompt_digest=prompt_digest(
                encoded.prompt_ids, encoded.continuations, stops, max_tokens, sampling=sampling, reasoning=reasoning
            ),
            prompt_ids=tuple(encoded.prompt_ids),
            continuations=tuple(tuple(ids) for ids in encoded.continuations),
            choices=prompt.choices,
            stops=stops,
            max_tokens=max_tokens,
            prompt_truncated=encoded.n_over > 0,
            problem=encoded.problem,
            boundary_merge=encoded.boundary_merge,
            n_bytes=encoded.n_bytes,
            sampling=sampling,
            seed=self._seed if sampling else 0,
            reasoning=reasoning,
        )

    def _refuse_open(self, items: Sequence[Item], prompts: Sequence[Prompt]) -> None:
        """A chat template that ends in the start marker would have all reasoning read as answer."""
        reasoning = self._benchmark.scorer.reasoning
        if reasoning is None or reasoning.begins_open:
            return
        for item, prompt in zip(items, prompts, strict=True):
            if prompt.context.rstrip().endswith(reasoning.start):
                raise UserError(
                    f"benchmark {self._benchmark.name!r}, item {item.item_id!r}: the prompt ends in "
                    f"{reasoning.start!r}, so that outputs begin within reasoning block {reasoning.name!r}; set "
                    "'begins_open: true' in scorer.reasoning, in a new version"
                )

    def _refuse_long(self, items: Sequence[Item], encoded: Sequence[Encoded]) -> None:
        if self._benchmark.on_long_prompt != "refuse":
            return
        long = [
            f"{item.item_id!r} ({each.n_over} tokens over)"
            for item, each in zip(items, encoded, strict=True)
            if each.n_over > 0 or each.problem == "continuation_too_long"
        ]
        if long:
            more = f" and {len(long) - _NAMED_AT_MOST} more" if len(long) > _NAMED_AT_MOST else ""
            raise UserError(
                f"benchmark {self._benchmark.name!r} refuses prompts longer than the context ({self._context} tokens): "
                f"items {', '.join(long[:_NAMED_AT_MOST])}{more}; use fewer examples, a model with more context, or "
                "'on_long_prompt: truncate'"
            )


def build_requests(
    benchmark: BenchmarkVersion,
    items: Sequence[Item],
    few_shot_items: Sequence[Item],
    tokenizer: Tokenizer,
    engine: EngineConfig,
    max_context: int,
) -> list[Request]:
    """The requests of `items`, in order; see `PromptBuilder`, which spares the set-up between batches."""
    return PromptBuilder(benchmark, few_shot_items, tokenizer, engine, max_context).requests(items)


def _either(engine: Policy, benchmark: Policy) -> Policy:
    return benchmark if engine == "auto" else engine


def _with_shared_prefixes(requests: Sequence[Request]) -> list[Request]:
    """Each request with the number of leading tokens it shares with a neighbour (a hint for the engine's cache)."""
    shared = [shared_prefix(a.prompt_ids, b.prompt_ids) for a, b in itertools.pairwise(requests)]
    return [
        replace(request, shared_prefix_tokens=max(before, after))
        for request, before, after in zip(requests, [0, *shared], [*shared, 0], strict=False)
    ]
