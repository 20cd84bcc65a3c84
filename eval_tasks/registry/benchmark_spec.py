"""A benchmark's YAML file in, a checked `BenchmarkSpec` out. Reads no items and knows no scorer's metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from eval_tasks.records import DataSource, FewShot, PromptTemplate, ReasoningBlock, Sampling
from eval_tasks.records.benchmark import Kind, Policy
from eval_tasks.registry.templates import check_template
from eval_tasks.registry.yaml_file import NAME, Section, load_yaml


def _template(text: str) -> str:
    check_template(text)
    return text


def _within_repository(path: str) -> str:
    if not path or path.startswith("/") or ".." in path.split("/"):
        raise ValueError(f"{path!r} is no path within a repository, such as 'data/test-*.parquet'")
    return path


Template = Annotated[str, AfterValidator(_template)]
RepositoryPath = Annotated[str, AfterValidator(_within_repository)]
Range = Annotated[list[float], Field(min_length=2, max_length=2)]


class SourceSpec(Section):
    """Pinned rows: `uri` with `blake3` (relative to the YAML file), or `hub` with `revision` and `split` or `files`.

    `where`: only the rows that have these values in these columns.
    """

    uri: str | None = None
    blake3: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    format: Literal["jsonl", "parquet"] | None = None
    hub: str | None = Field(default=None, pattern=r"^[\w.-]+(/[\w.-]+)?$")
    revision: str | None = Field(default=None, pattern=r"^[0-9a-f]{40}$")
    config: str | None = None
    split: str | None = None
    files: list[RepositoryPath] | None = Field(default=None, min_length=1)
    where: dict[str, str | int | bool] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _pinned(self) -> SourceSpec:
        if (self.uri is None) == (self.hub is None):
            raise ValueError("needs exactly one of 'uri' and 'hub'")
        if self.uri is not None:
            if self.blake3 is None:
                raise ValueError("a 'uri' needs the 'blake3' of the file (64 hex characters), so that drift is noticed")
            if self.revision or self.config or self.split or self.files:
                raise ValueError("'revision', 'config', 'split' and 'files' go with 'hub', not with 'uri'")
        elif self.revision is None or (self.split is None and self.files is None):
            raise ValueError(
                "a 'hub' data set needs its 'revision' (40 hex characters, not a branch) and 'split', or 'files'"
            )
        elif self.files is not None and (self.config or self.split):
            raise ValueError("'files' says which files are read: leave out 'config' and 'split'")
        return self

    def record(self, blake3: str | None = None) -> DataSource:
        """As a record, with the digest that was found when the file names none."""
        fields = self.model_dump()
        return DataSource(**{**fields, "blake3": self.blake3 or blake3, "files": tuple(self.files or ())})


class ItemSpec(Section):
    """Which columns mean what. Without `id` a row's id is the digest of its content; several columns are joined.

    `categories` names the groups that values of the `category` column belong to, where the data has but the values.
    """

    id: str | list[str] | None = None
    target: Template | None = None
    stratum: str | None = None
    cluster: str | None = None
    category: str | None = None
    categories: dict[str, list[str]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_category_each(self) -> ItemSpec:
        if self.categories and self.category is None:
            raise ValueError("'categories' groups the values of a column: name it in 'category'")
        values = [value for group in self.categories.values() for value in group]
        if twice := sorted({value for value in values if values.count(value) > 1}):
            raise ValueError(f"categories: {twice[0]!r} is in more than one")
        return self

    @property
    def id_columns(self) -> tuple[str, ...]:
        """The columns of the id, none when it is a digest."""
        if self.id is None:
            return ()
        return (self.id,) if isinstance(self.id, str) else tuple(self.id)


class FewShotSpec(Section):
    """Worked examples; without `source` they are other rows of the benchmark itself."""

    k: int = Field(ge=1)
    select: Literal["first", "seeded"] = "first"
    match: str | None = None
    seed: int = 0
    source: SourceSpec | None = None

    def record(self, blake3: str | None = None) -> FewShot:
        """As a record, with the digest that was found for its source."""
        source = self.source.record(blake3) if self.source else None
        return FewShot(k=self.k, select=self.select, match=self.match, seed=self.seed, source=source)


class PromptSpec(Section):
    """How an item becomes text; see `eval_tasks.records.PromptTemplate`."""

    description: Template = ""
    item: Template
    choices: Template | list[Template] = Field(default_factory=list)
    target: Template = ""
    target_delimiter: str = " "
    few_shot_delimiter: str = "\n\n"
    system: Template = ""
    chat: Policy = "never"
    bos: Policy = "auto"
    stop: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=list)

    @field_validator("stop", mode="before")
    @classmethod
    def _list_of_stops(cls, stop: object) -> object:
        if isinstance(stop, str):
            raise ValueError(f"stop strings are a list, so that none is read character by character: [{stop!r}]")
        return stop

    def record(self) -> PromptTemplate:
        """As a record."""
        fields = self.model_dump()
        choices = self.choices if isinstance(self.choices, str) else tuple(self.choices)
        return PromptTemplate(**{**fields, "choices": choices, "stop": tuple(self.stop)})


class SamplingSpec(Section):
    """Declared sampling; see `eval_tasks.records.Sampling`."""

    temperature: float = Field(gt=0, le=100, allow_inf_nan=False)
    samples: int = Field(ge=1, le=1024)
    reason: str = Field(min_length=1)
    top_k: int = Field(default=0, ge=0)
    top_p: float = Field(default=1.0, gt=0, le=1)
    min_p: float = Field(default=0.0, ge=0, lt=1)
    pass_at: list[Annotated[int, Field(ge=1)]] = Field(default_factory=list)

    @field_validator("temperature", mode="before")
    @classmethod
    def _not_greedy(cls, temperature: object) -> object:
        if isinstance(temperature, int | float) and temperature == 0:
            raise ValueError("0 is greedy, which is what a benchmark without 'sampling' is")
        return temperature

    @model_validator(mode="after")
    def _enough_samples(self) -> SamplingSpec:
        if len(set(self.pass_at)) < len(self.pass_at):
            raise ValueError(f"pass_at names a k twice: {self.pass_at}")
        if over := [k for k in self.pass_at if k > self.samples]:
            raise ValueError(f"pass@{over[0]} needs at least {over[0]} samples per item, not {self.samples}")
        if not self.reason.strip():
            raise ValueError("reason is blank: say why greedy decoding would not measure what is meant")
        return self

    def record(self) -> Sampling:
        """As a record."""
        return Sampling(**{**self.model_dump(), "pass_at": tuple(sorted(self.pass_at))})


class ReasoningSpec(Section):
    """What of an output is reasoning; see `eval_tasks.records.ReasoningBlock`."""

    name: str = Field(min_length=1)
    start: str = Field(min_length=1)
    end: str = Field(min_length=1)
    begins_open: bool = False
    unclosed: Literal["empty"] = "empty"

    def record(self) -> ReasoningBlock:
        """As a record."""
        return ReasoningBlock(**self.model_dump())


class ScorerSpec(Section):
    """A scorer by name, its parameters, and what it does not see of an output."""

    name: str
    parameters: dict[str, Any] = Field(default_factory=dict)
    reasoning: ReasoningSpec | None = None


class BenchmarkSpec(Section):
    """A whole benchmark file."""

    name: str = Field(pattern=NAME)
    version: str = Field(min_length=1)
    kind: Kind
    description: str = ""
    licence: str = Field(min_length=1)
    source: SourceSpec
    item: ItemSpec
    few_shot: FewShotSpec | None = None
    prompt: PromptSpec
    sampling: SamplingSpec | None = None
    scorer: ScorerSpec
    primary_metric: str
    decision_grade: bool = False
    chance_level: float | None = Field(default=None, ge=0, le=1)
    plausible_range: dict[str, Range] = Field(default_factory=dict)
    plausible_change: dict[str, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)
    max_tokens: int = Field(default=256, ge=1)
    on_long_prompt: Literal["truncate", "refuse"] = "truncate"
    hardware_class: str = ""

    @field_validator("plausible_range")
    @classmethod
    def _ordered(cls, ranges: dict[str, list[float]]) -> dict[str, list[float]]:
        for metric, (low, high) in ranges.items():
            if not low <= high:
                raise ValueError(f"{metric}: the low end {low} is above the high end {high}")
        return ranges

    @model_validator(mode="after")
    def _kind_fits(self) -> BenchmarkSpec:
        if self.kind == "choice":
            if not self.prompt.choices:
                raise ValueError("kind 'choice' needs prompt.choices: a column that holds a list, or a list of texts")
            if self.item.target is None:
                raise ValueError("kind 'choice' needs item.target: the column with the gold choice")
        elif self.prompt.choices:
            raise ValueError(f"prompt.choices belongs to kind 'choice', not to {self.kind!r}")
        if self.kind == "loss":
            prompt = self.prompt
            if self.few_shot or prompt.description or prompt.system or prompt.target or prompt.stop:
                raise ValueError(
                    "kind 'loss' scores the text of prompt.item alone: few_shot, prompt.description, prompt.system, "
                    "prompt.target and prompt.stop belong to the other kinds"
                )
        if self.few_shot is not None and self.kind == "generation" and not self.prompt.target:
            raise ValueError("few_shot needs prompt.target: the answer text of a worked example")
        return self

    @model_validator(mode="after")
    def _generation_only(self) -> BenchmarkSpec:
        if self.kind != "generation":
            for name, found in (("sampling", self.sampling), ("scorer.reasoning", self.scorer.reasoning)):
                if found is not None:
                    raise ValueError(f"{name} belongs to kind 'generation', not to {self.kind!r}")
        if self.scorer.reasoning is not None:
            for marker in (self.scorer.reasoning.start, self.scorer.reasoning.end):
                for stop in self.prompt.stop:
                    if stop in marker or marker in stop:
                        raise ValueError(
                            f"prompt.stop {stop!r} and the reasoning marker {marker!r} hold one another: "
                            "an output would end where its reasoning begins or ends"
                        )
        return self


def load_benchmark_file(path: Path) -> BenchmarkSpec:
    """The benchmark in a YAML file. Raises UserError naming file, field, value and close names."""
    return load_yaml(path, BenchmarkSpec)
