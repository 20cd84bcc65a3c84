"""The plan of a run: which items in which batches in which shards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from eval_tasks.records.run import RunRequest

Group = Literal["logprob", "generation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedBatch:
    """Up to 32 items of one benchmark in item_id order: the unit of work, of claims and of resumption.

    `batch` is unique within the plan. `cost_tokens` is the tokens to be read plus the tokens that may be written.
    """

    batch: int
    shard: int
    benchmark_id: str
    item_ids: tuple[str, ...]
    cost_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedShard:
    """One pod's work.

    What its memory is reckoned from: tokens of its longest prompt and of the longest text that follows one, and how
    many sequences its fullest batch reads (an item's prompt, and each of its choices of several tokens).
    """

    shard: int
    group: Group
    n_batches: int
    n_items: int
    cost_tokens: int
    longest_prompt_tokens: int = 0
    longest_output_tokens: int = 0
    most_sequences: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Content-addressed manifest of a run's work; `batches_blob` is the Parquet table of its PlannedBatch rows.

    `environment` is the name of the environment all its pods run in.
    """

    run_id: str
    request: RunRequest
    environment: str
    checkpoint_uri: str
    shards: tuple[PlannedShard, ...]
    batches_blob: str
    n_batches: int
    n_items: int
    notes: tuple[str, ...] = ()
