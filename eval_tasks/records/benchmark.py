"""Benchmark versions and suites: the instruments.

A benchmark version is its (`items_digest`, `template_digest`, `scorer_digest`): the template, few-shot examples and
stop strings are part of the instrument, and so is the scorer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from eval_tasks.digests import digest_parts, digest_value, short_id

Kind = Literal["loss", "choice", "generation"]
Tier = Literal["health", "selection", "release"]
Policy = Literal["auto", "always", "never"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    """Pinned rows: a file by URI and blake3, or a Hugging Face dataset by repository, revision and split or files.

    Exactly one of `uri` and `hub` is set. A relative `uri` is relative to the benchmark's YAML file; `files` are paths
    in the repository, in which ``*`` may stand. `where`: only the rows that have these values in these columns.
    """

    uri: str | None = None
    blake3: str | None = None
    format: Literal["jsonl", "parquet"] | None = None
    hub: str | None = None
    revision: str | None = None
    config: str | None = None
    split: str | None = None
    files: tuple[str, ...] = ()
    where: Mapping[str, str | int | bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FewShot:
    """Worked examples in front of each item: `k` rows, the same for any order, subset or sharding of the items.

    `select`: ``first`` takes the first k rows, ``seeded`` draws k by a hash of (seed, item_id, row id). With `match`,
    only rows whose field `match` equals the item's are taken (MMLU's subject).
    """

    k: int
    select: Literal["first", "seeded"] = "first"
    match: str | None = None
    seed: int = 0
    source: DataSource | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptTemplate:
    """How an item becomes text; every string is a sandboxed Jinja2 template over the item's fields.

    `choices` is either a fixed tuple of templates, or one template string naming a field that holds a list.
    `target` renders a few-shot example's answer, and for ``choice`` benchmarks the gold index or label.
    """

    item: str
    description: str = ""
    choices: tuple[str, ...] | str = ()
    target: str = ""
    target_delimiter: str = " "
    few_shot_delimiter: str = "\n\n"
    system: str = ""
    chat: Policy = "never"
    bos: Policy = "auto"
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How a benchmark that declares it draws its outputs; without a declaration generation is greedy.

    Every item is answered `samples` times. The next token's distribution is taken at `temperature`, then cut to the
    `top_k` most probable tokens (0: all), to the smallest set of mass `top_p`, and to tokens of at least `min_p` times
    the highest probability. `pass_at`: the ks of pass@k. `reason` says why greedy would not measure what is meant.
    """

    temperature: float
    samples: int
    reason: str
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    pass_at: tuple[int, ...] = ()

    @property
    def sampling_digest(self) -> str:
        """Digest of every field but the reason."""
        numbers = [self.temperature, self.samples, self.top_k, self.top_p, self.min_p]
        return digest_value([*numbers, list(self.pass_at)])


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningBlock:
    """What of an output is reasoning: from `start` to `end`, markers included. Kept in the output, never scored.

    `begins_open`: the prompt (a chat template) has opened the block, so the output begins within it. `unclosed`:
    ``empty`` makes all of an output with a block that never ends reasoning, and its answer empty. No stop string ends
    an output within a block.
    """

    name: str
    start: str
    end: str
    begins_open: bool = False
    unclosed: Literal["empty"] = "empty"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerRef:
    """A scorer by name, its declared version and its parameters; `reasoning` is taken out before it sees an output."""

    name: str
    version: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    reasoning: ReasoningBlock | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkVersion:
    """A registered benchmark. `plausible_range` maps a metric to its (low, high), inclusive.

    `plausible_change` maps a metric to how far it may lie from the median of the training run's last looks.
    `category_key`: the column whose categories items carry as ``metadata["category"]``, beside their stratum.
    """

    name: str
    version: str
    kind: Kind
    items_digest: str
    template_digest: str
    scorer_digest: str
    n_items: int
    items_blob: str
    few_shot_blob: str | None
    template: PromptTemplate
    few_shot: FewShot | None
    scorer: ScorerRef
    primary_metric: str
    licence: str
    source: DataSource
    created_at: str
    decision_grade: bool = False
    stratum_key: str | None = None
    cluster_key: str | None = None
    chance_level: float | None = None
    plausible_range: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    max_tokens: int = 256
    on_long_prompt: Literal["truncate", "refuse"] = "truncate"
    hardware_class: str = ""
    description: str = ""
    sampling: Sampling | None = None
    category_key: str | None = None
    plausible_change: Mapping[str, float] = field(default_factory=dict)

    @property
    def benchmark_id(self) -> str:
        """Identity of the instrument: the three digests, and the settings beside them that move a number."""
        parts = [self.items_digest, self.template_digest, self.scorer_digest, self.kind, str(self.max_tokens)]
        if self.sampling is not None:
            parts.append(self.sampling.sampling_digest)
        return short_id(digest_parts(parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteEntry:
    """One benchmark of a suite; with `n_items`, a fixed, stratified choice of that many items, seeded by item id."""

    benchmark: str
    version: str
    benchmark_id: str
    n_items: int | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """What a tier runs: an ordered list of benchmark versions."""

    name: str
    version: str
    tier: Tier
    entries: tuple[SuiteEntry, ...]

    @property
    def suite_id(self) -> str:
        """Digest of name, version, tier and entries."""
        entries = [[e.benchmark_id, e.n_items, e.seed] for e in self.entries]
        return short_id(digest_value([self.name, self.version, self.tier, entries]))
