"""Every choice of the engine that can move a number, and the environment it ran in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from pydantic import Discriminator, Tag

from eval_tasks.digests import digest_value, short_id
from eval_tasks.records.benchmark import Policy

MOCK_MARK = "MOCK ENGINE: not a measurement"
"""Stands in every record that a mock engine has part in."""

MOCK_RUNS = "mock/"
"""Before the training run of a mock engine's run, so that no series, baseline or study of a real one finds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """Recorded with each run, part of its request_digest. Nothing here is a tuning value.

    `attention`: ``tile`` is the engine, ``reference`` transformers' own forward, one sequence at a time: slow, for
    architectures that were not verified. `tile`: positions per attention product. `batch_size`: items per planned
    batch (unit of work, not of shape). `threads`: intra-op threads. `max_context`: tokens, None for the model's own
    limit. `mock_accuracy`: None for the engine; a share of right answers for the mock engine, which runs no model.
    """

    device: Literal["cpu", "cuda"] = "cpu"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    accumulation: Literal["float32"] = "float32"
    attention: Literal["tile", "reference"] = "tile"
    tile: int = 32
    batch_size: int = 32
    threads: int = 1
    tensor_parallel: int = 1
    deterministic: bool = True
    prefix: Literal["none", "shared"] = "none"
    decoding: Literal["greedy"] = "greedy"
    max_context: int | None = None
    truncation: Literal["left"] = "left"
    bos: Policy = "auto"
    chat: Policy = "auto"
    seed: int = 0
    mock_accuracy: float | None = None

    @property
    def is_mock(self) -> bool:
        """Whether the rows are made up: nothing that comes of them is a measurement."""
        return self.mock_accuracy is not None

    @property
    def engine_digest(self) -> str:
        """Digest of every field."""
        return digest_value(asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRows:
    """Stands where an engine's configuration would: the rows were read from files; what made them is not known.

    `format`: what wrote the files. `files`: blake3 of each, sorted, so that the same files are the same run wherever
    they lie. `name`, `model`, `training_run` and `step` are what the person who imported them said.
    """

    format: Literal["jsonl", "lm-eval", "inspect"]
    files: tuple[str, ...]
    name: str
    model: str = ""
    training_run: str = ""
    step: int = 0
    rows: Literal["imported"] = "imported"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointConfig:
    """Stands where an engine's configuration would: the rows are the replies of a chat endpoint, not reproducible.

    What is sent with each request: `model`, `seed` and a temperature of 0, for whatever they are worth there.
    `batch_size`: items per planned batch.
    """

    base_url: str
    model: str
    seed: int = 0
    temperature: Literal[0] = 0
    batch_size: int = 8
    rows: Literal["replies"] = "replies"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTuning:
    """Values that provably cannot move a bit: recorded beside the EngineConfig, outside every digest.

    `graph_mb`: memory for recorded decoding steps on a GPU, 0 for none.
    """

    tokens_per_forward: int = 512
    decode_rows: int = 32
    prefix_cache_mb: int = 256
    graph_mb: int = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Hardware and software a shard ran on, component by component."""

    components: Mapping[str, str]

    @property
    def env_fingerprint(self) -> str:
        """Digest of the components."""
        return short_id(digest_value(dict(self.components)))


def _source_of_rows(value: object) -> str:
    rows = value.get("rows") if isinstance(value, dict) else getattr(value, "rows", None)
    return {"imported": "ImportedRows", "replies": "EndpointConfig"}.get(str(rows), "EngineConfig")


JudgeEngine = Annotated[
    Annotated[EngineConfig, Tag("EngineConfig")] | Annotated[EndpointConfig, Tag("EndpointConfig")],
    Discriminator(_source_of_rows),
]
Engine = Annotated[
    Annotated[EngineConfig, Tag("EngineConfig")]
    | Annotated[ImportedRows, Tag("ImportedRows")]
    | Annotated[EndpointConfig, Tag("EndpointConfig")],
    Discriminator(_source_of_rows),
]
