"""The way of an item: Item -> Request -> Response -> Score. `item_id` never changes on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from eval_tasks.records.benchmark import Kind, ReasoningBlock, Sampling

Status = Literal["ok", "invalid", "missing", "excluded"]
FinishReason = Literal["", "eos", "stop", "length"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One row of a benchmark. `target` is the gold answer as the data has it; `metadata` is carried, never rendered."""

    item_id: str
    fields: Mapping[str, Any]
    target: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    stratum: str | None = None
    cluster: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A rendered, tokenised item: all that the engine needs, and nothing of the gold answer.

    `prompt_ids`: context token ids (BOS included by policy). ``choice``: one non-empty tuple of ids per choice in
    `continuations`. ``loss``: `continuations` holds one tuple, the tokens that are scored after `prompt_ids`.
    ``generation``: `stops` (text, cut before them) and `max_tokens`. `shared_prefix_tokens` is how many leading tokens
    of `prompt_ids` the item has in common with its neighbours in the plan (a hint: it never changes a number).
    `problem` names why an item cannot be scored (``empty_continuation`` ...): it becomes ``invalid`` without running.
    `prompt_digest` is the digest of (prompt_ids, continuations, stops, max_tokens), and of sampling and reasoning if
    any. `boundary_merge`: the tokenizer merged the context's end with a choice's beginning, so the split stands where
    all choices still agree.

    `sampling`: how outputs are drawn, None for the one greedy output; `seed` is the run's. `reasoning`: within such a
    block no stop string ends the output.
    """

    benchmark_id: str
    item_id: str
    kind: Kind
    prompt: str
    prompt_digest: str
    prompt_ids: tuple[int, ...]
    continuations: tuple[tuple[int, ...], ...] = ()
    choices: tuple[str, ...] = ()
    stops: tuple[str, ...] = ()
    max_tokens: int = 0
    prompt_truncated: bool = False
    problem: str = ""
    shared_prefix_tokens: int = 0
    n_bytes: int = 0
    boundary_merge: bool = False
    sampling: Sampling | None = None
    seed: int = 0
    reasoning: ReasoningBlock | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One of the outputs of an item that is sampled, in the order of their numbers.

    `token_logprobs` are the model's own (fp32 log-softmax of the untempered logits), as for greedy outputs.
    """

    output: str
    output_ids: tuple[int, ...]
    finish_reason: FinishReason
    token_logprobs: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What the engine produced for one request: immutable, and bit-identical for an identical config_digest.

    ``choice`` and ``loss``: `logprobs` is the sum per continuation (natural log, nats; fp32 values added in fp64),
    `token_logprobs` the values per token. ``choice``: `greedy` says of each choice whether greedy decoding would write
    it (at each of its tokens no other is more probable, a tie going to the lowest id); it is empty where not known.
    ``generation``: `output` is the text before any stop string, `output_ids` the generated ids, `token_logprobs` one
    tuple for them. `n_bytes`: UTF-8 bytes of the text a ``loss`` has scored, 0 when not known (an imported row).
    `latency_ms` is stored and is no part of the row's identity.

    An item that is sampled has one row: `samples` holds its outputs, `output`, `output_ids`, `finish_reason` and the
    logprobs are empty, `n_output_tokens` is the sum over samples, and `output_truncated` says whether any was cut.
    """

    benchmark_id: str
    item_id: str
    status: Status
    prompt_digest: str
    reason: str = ""
    output: str = ""
    output_ids: tuple[int, ...] = ()
    finish_reason: FinishReason = ""
    logprobs: tuple[float, ...] = ()
    token_logprobs: tuple[tuple[float, ...], ...] = ()
    n_prompt_tokens: int = 0
    n_output_tokens: int = 0
    n_bytes: int = 0
    prompt_truncated: bool = False
    output_truncated: bool = False
    latency_ms: float = 0.0
    samples: tuple[Sample, ...] = ()
    greedy: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One metric of one item under one scorer or grader version.

    `value` is None unless the item counts (``excluded`` and ``missing`` have none; ``invalid`` counts as 0 for metrics
    where more is better and is None for losses). `weight` is the item's share in a pooled metric (1 for most;
    instructions for IFEval's instruction level; bytes or tokens for losses): pooled = sum(value*weight)/sum(weight).

    Of a sampled item, `value` is the mean of `sample_values` (one per sample); `extracted` and `detail` are JSON lists
    of what each sample gave. pass@k has a value of its own and no `sample_values`.
    """

    benchmark_id: str
    item_id: str
    metric: str
    value: float | None
    weight: float = 1.0
    status: Status = "ok"
    reason: str = ""
    extracted: str | None = None
    detail: str = ""
    stratum: str | None = None
    cluster: str | None = None
    sample_values: tuple[float, ...] = ()
