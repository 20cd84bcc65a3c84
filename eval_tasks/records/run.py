"""Runs: what was asked, where it stands, what the guard found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from eval_tasks.digests import digest_value, short_id
from eval_tasks.errors import UserError
from eval_tasks.records.benchmark import Tier
from eval_tasks.records.codec import to_json
from eval_tasks.records.engine import Engine, EngineConfig, EngineTuning, ImportedRows
from eval_tasks.records.grader import Judging

NO_TRAINING_RUN = "adhoc"
"""The name that stands for none: checkpoints that were evaluated under it have nothing to do with each other."""

RunStatus = Literal["planned", "running", "closed", "incomplete", "gone", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """All that decides a run's rows, but for the environment. `benchmark_ids` in suite order.

    The suite's choice of items is in its `suite_id`. A run that was imported has no checkpoint (an empty id), and in
    place of an engine the files that its rows come from; so has one that an endpoint answers.
    """

    checkpoint_id: str
    suite: str
    suite_version: str
    suite_id: str
    benchmark_ids: tuple[str, ...]
    engine: Engine
    harness_version: str
    graders: tuple[str, ...] = ()
    seed: int = 0

    @property
    def request_digest(self) -> str:
        """Digest of every field."""
        return digest_value(to_json(self))

    @property
    def engine_config(self) -> EngineConfig:
        """The engine's configuration. Raises UserError for rows that were imported: they cannot be computed."""
        if isinstance(self.engine, ImportedRows):
            raise UserError(f"the rows of {self.engine.name!r} were imported from files: no engine can compute them")
        if not isinstance(self.engine, EngineConfig):
            raise UserError(f"the rows are replies of {self.engine.model!r} at an endpoint: no engine can compute them")
        return self.engine

    def run_id(self, environment: str, repeat: int = 0) -> str:
        """The same request in the same environment is the same run; a wanted repeat has its own number."""
        return short_id(digest_value([self.request_digest, environment, repeat]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as the catalog has it. Times are UTC, ISO 8601.

    `config_digest` = digest of (request_digest, env_fingerprint), known once the first shard has reported. `judging`:
    whose outputs a judge's run judges; None for an evaluation.
    """

    run_id: str
    request: RunRequest
    environment: str
    repeat: int = 0
    tier: Tier
    training_run: str = ""
    step: int = 0
    checkpoint_uri: str = ""
    status: RunStatus = "planned"
    reason: str = ""
    created_at: str
    closed_at: str | None = None
    env_fingerprint: str | None = None
    config_digest: str | None = None
    plan_blob: str | None = None
    tuning: EngineTuning = field(default_factory=EngineTuning)
    origin: Literal["engine", "imported", "endpoint", "mock"] = "engine"
    judging: Judging | None = None

    def require_evaluation(self) -> None:
        """Raise UserError for a run that judges another's outputs: its rows are verdicts on them."""
        if self.judging is not None:
            raise UserError(
                f"run {self.run_id[:12]} is no evaluation of its checkpoint: it judges outputs of run "
                f"{self.judging.run_id[:12]} for {self.judging.grader}; name that run"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleOutput:
    """One raw output shown with an excursion: the prompt's tail, the output, the extracted answer, the gold."""

    item_id: str
    status: str
    prompt_tail: str
    output: str
    extracted: str | None
    gold: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Excursion:
    """A number outside what is plausible, or rows that break the data contract: the number is quarantined."""

    benchmark_id: str
    benchmark: str
    metric: str
    check: str
    observed: str
    expected: str
    samples: tuple[SampleOutput, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractResult:
    """One clause of the data contract on one part of a run's rows: `part` of `benchmark` ('' for the whole run)."""

    benchmark: str
    part: str
    check: str
    expectation: str
    passed: bool
    observed: str
    expected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractReport:
    """The data contract of a run's rows, clause by clause in the order of checking. `by`: what validated it."""

    by: str
    results: tuple[ContractResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardReport:
    """What guard checked in a run and what it found. `checks` maps a check's name to its outcome in words.

    `contract_blob`: digest of the ContractReport; '' where there is none (a report of an earlier release).
    """

    run_id: str
    passed: bool
    checks: Mapping[str, str]
    excursions: tuple[Excursion, ...] = ()
    contract_blob: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One event a person should see; `alert_id` is a digest of what it is about, so a retry cannot double it."""

    alert_id: str
    kind: str
    title: str
    body: str
    run_id: str | None = None
    training_run: str | None = None
    created_at: str
    acknowledged_by: str | None = None
    acknowledged_reason: str | None = None
