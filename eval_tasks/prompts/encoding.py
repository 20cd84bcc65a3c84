"""Text -> token ids: BOS by policy, context and continuations split, cut to the context. Knows no template.

Context and continuation as in lm-eval 0.4.9: white space at the context's end moves to the continuation, and a
continuation is what the whole has beyond the context. Where a tokenizer merges across that boundary, the reference
splits by length and scores other tokens than it says; here prompt and continuations are split where the tokens of the
context and of every choice still agree, so that all choices are scored after one prompt, and the request is flagged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from eval_tasks.errors import UserError
from eval_tasks.prompts.compose import Prompt
from eval_tasks.records.benchmark import Policy
from eval_tasks.tokenization import Tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """Token ids of one item; fields as in `eval_tasks.records.Request`. `n_over`: tokens beyond the context, cut."""

    prompt_ids: list[int]
    continuations: list[list[int]]
    boundary_merge: bool = False
    problem: str = ""
    n_over: int = 0
    n_bytes: int = 0


class Encoder:
    """Encodes for one tokenizer, BOS policy and context length in tokens."""

    def __init__(self, tokenizer: Tokenizer, bos: Policy, max_context: int) -> None:
        self._tokenizer = tokenizer
        self._max_context = max_context
        wanted = tokenizer.adds_bos if bos == "auto" else bos == "always"
        if wanted and tokenizer.bos_id is None:
            raise UserError("BOS policy is 'always', and the checkpoint names no BOS token; set 'bos: auto' or 'never'")
        self._bos = tokenizer.bos_id if wanted else None

    def choices(self, prompts: Sequence[Prompt]) -> list[Encoded]:
        """Prompts with their choices. A choice without a token is a problem: nothing would be scored."""
        contexts = [prompt.context.rstrip() for prompt in prompts]
        texts: list[str] = []
        for prompt, context in zip(prompts, contexts, strict=True):
            moved = prompt.context[len(context) :] + prompt.delimiter
            texts += [context, *(context + moved + choice for choice in prompt.choices)]
        encoded = iter(self._tokenizer.encode_batch(texts))
        split = []
        for prompt in prompts:
            context_ids = next(encoded)
            wholes = [next(encoded) for _ in prompt.choices]
            split.append(self._split(prompt, context_ids, wholes))
        return split

    def generations(self, prompts: Sequence[Prompt], max_tokens: int) -> list[Encoded]:
        """Prompts that keep their last tokens and leave room for `max_tokens`."""
        room = self._max_context - max_tokens
        encoded = self._tokenizer.encode_batch([prompt.context for prompt in prompts])
        return [self._cut(self._opened(Encoded(prompt_ids=ids, continuations=[])), room) for ids in encoded]

    def documents(self, prompts: Sequence[Prompt]) -> list[Encoded]:
        """Texts to be scored whole. BOS is the prompt, or the first token where there is none; the end is cut."""
        encoded = self._tokenizer.encode_batch([prompt.context for prompt in prompts])
        return [self._document(prompt.context, ids) for prompt, ids in zip(prompts, encoded, strict=True)]

    def _split(self, prompt: Prompt, context_ids: list[int], wholes: list[list[int]]) -> Encoded:
        shared = min((shared_prefix(context_ids, whole) for whole in wholes), default=len(context_ids))
        continuations = [whole[shared:] for whole in wholes]
        empty = any(
            not choice or not ids or whole == context_ids
            for choice, ids, whole in zip(prompt.choices, continuations, wholes, strict=True)
        )
        encoded = Encoded(
            prompt_ids=context_ids[:shared],
            continuations=continuations,
            boundary_merge=shared < len(context_ids),
            problem="empty_continuation" if empty else "",
        )
        longest = max((len(ids) for ids in continuations), default=0)
        return self._cut(self._opened(encoded), self._max_context + 1 - longest)

    def _opened(self, encoded: Encoded) -> Encoded:
        """With one BOS in front where the policy wants it; an empty prompt becomes BOS, else EOS, as in lm-eval."""
        ids = encoded.prompt_ids
        if self._bos is not None:
            ids = [self._bos, *_without_leading(ids, self._bos)]
        if not ids:
            prefix = [self._tokenizer.bos_id] if self._tokenizer.bos_id is not None else list(self._tokenizer.eos_ids)
            if not prefix:
                return replace(encoded, problem=encoded.problem or "empty_prompt")
            ids = prefix[:1]
        return replace(encoded, prompt_ids=ids)

    def _cut(self, encoded: Encoded, room: int) -> Encoded:
        """The last `room` tokens of the prompt, as the reference keeps them."""
        if room < 1:
            return replace(encoded, problem=encoded.problem or "continuation_too_long")
        n_over = max(0, len(encoded.prompt_ids) - room)
        return replace(encoded, prompt_ids=encoded.prompt_ids[n_over:], n_over=n_over)

    def _document(self, text: str, ids: list[int]) -> Encoded:
        if self._bos is not None:
            prompt, rest = [self._bos], _without_leading(ids, self._bos)
        else:
            prompt, rest = ids[:1], ids[1:]
        scored = rest[: self._max_context]
        n_bytes = len(text.encode("utf-8", "surrogatepass"))
        if self._bos is None or len(scored) < len(rest):
            n_bytes = self._n_bytes(ids[: len(ids) - len(rest) + len(scored)]) - self._n_bytes(
                [] if self._bos is not None else prompt
            )
        return Encoded(
            prompt_ids=prompt,
            continuations=[scored],
            problem="" if scored else "empty_continuation",
            n_over=len(rest) - len(scored),
            n_bytes=n_bytes,
        )

    def _n_bytes(self, ids: list[int]) -> int:
        return len(self._tokenizer.decode(ids, skip_special_tokens=False).encode())


def shared_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """How many leading elements two sequences have in common."""
    n = min(len(a), len(b))
    if a[:n] == b[:n]:
        return n
    return next(i for i in range(n) if a[i] != b[i])


def _without_leading(ids: list[int], token: int) -> list[int]:
    n = next((n for n, i in enumerate(ids) if i != token), len(ids))
    return ids[n:]
