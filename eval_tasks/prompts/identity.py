"""Digests of what was asked: of a benchmark's template with its examples, and of one request's tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from eval_tasks.digests import digest_bytes, digest_value
from eval_tasks.records import FewShot, Item, PromptTemplate, ReasoningBlock, Sampling, to_json


def template_digest(template: PromptTemplate, few_shot: FewShot | None, few_shot_items: Sequence[Item]) -> str:
    """Digest of every field of the template (stop strings too), how examples are chosen, and the examples themselves.

    Where the examples' file lies is left out: the same rows elsewhere are the same instrument.
    """
    shots = None
    if few_shot is not None:
        shots = {k: v for k, v in to_json(few_shot).items() if k != "source"}
    rows = [[dict(item.fields), item.target] for item in sorted(few_shot_items, key=lambda item: item.item_id)]
    return digest_value([to_json(template), shots, rows])


def prompt_digest(
    prompt_ids: Sequence[int],
    continuations: Sequence[Sequence[int]],
    stops: Sequence[str],
    max_tokens: int,
    *,
    sampling: Sampling | None = None,
    reasoning: ReasoningBlock | None = None,
) -> str:
    """Digest of a request's (prompt_ids, continuations, stops, max_tokens), and of its sampling and reasoning if any.

    For whole numbers and text, Python's compact JSON is the canonical JSON of RFC 8785, and 40 times faster to write.
    """
    value: list[Any] = [list(prompt_ids), [list(ids) for ids in continuations], list(stops), max_tokens]
    if sampling is not None or reasoning is not None:
        value.append([sampling.sampling_digest if sampling else None, _markers(reasoning) if reasoning else None])
    return digest_bytes(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def _markers(reasoning: ReasoningBlock) -> list[str | bool]:
    return [reasoning.start, reasoning.end, reasoning.begins_open]
