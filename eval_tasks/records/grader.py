"""Model graders: what a judge is, to the last thing that can move one of its verdicts, and what a run of one judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from eval_tasks.digests import digest_value
from eval_tasks.records.benchmark import PromptTemplate, ReasoningBlock
from eval_tasks.records.codec import to_json
from eval_tasks.records.engine import EndpointConfig, EngineConfig, JudgeEngine

HUMAN = "human/"
JUDGE = "judge/"
RULE = "rule/"
BESIDE = (HUMAN, JUDGE, RULE)
"""Beginnings of the names of graders whose scores stand beside a run's numbers and never become them by themselves."""

JudgeKind = Literal["logprob", "generative", "endpoint"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointAccess:
    """How an endpoint is reached; no verdict depends on it. The key itself is only ever in `api_key_env`'s variable.

    `timeout_seconds` of one try; `tries` of one request in all; `concurrency`: requests in flight.
    """

    api_key_env: str = ""
    timeout_seconds: float = 120.0
    tries: int = 6
    concurrency: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """One version of a model grader of stored outputs.

    `answers`: every verdict there is, with its value from 0 to 1. ``logprob``: the answer with the highest summed
    log-probability after the prompt. ``generative`` and ``endpoint``: what the first group of `pattern` holds on the
    last line that it matches. `verdict_digest` is that of the code that reads verdicts. `checkpoint_uri` and `access`
    say where a judge is found, not what it is.
    """

    name: str
    version: str
    kind: JudgeKind
    template: PromptTemplate
    answers: Mapping[str, float]
    engine: JudgeEngine
    verdict_digest: str
    pattern: str = ""
    max_tokens: int = 0
    reasoning: ReasoningBlock | None = None
    checkpoint_id: str = ""
    checkpoint_uri: str = ""
    access: EndpointAccess = field(default_factory=EndpointAccess)
    description: str = ""

    @property
    def parts(self) -> dict[str, str]:
        """Digest of each part that a verdict depends on, by the name that messages use."""
        reasoning = to_json(self.reasoning) if self.reasoning else None
        return {
            "prompt": digest_value(to_json(self.template)),
            "answer set": digest_value(
                [self.kind, dict(self.answers), self.pattern, self.max_tokens, reasoning, self.verdict_digest]
            ),
            "checkpoint": self.checkpoint_id,
            "engine": digest_value(to_json(self.engine)),
        }

    @property
    def judge_digest(self) -> str:
        """Digest of all parts."""
        return digest_value(self.parts)

    @property
    def reproducible(self) -> bool:
        """Whether the same question gets the same verdict again: what serves an endpoint is not ours to know."""
        return not isinstance(self.engine, EndpointConfig)

    @property
    def engine_config(self) -> EngineConfig | None:
        """The engine's configuration; None for an endpoint."""
        return self.engine if isinstance(self.engine, EngineConfig) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """Whose outputs a run judges, and for which grader: it is no evaluation of the checkpoint that it runs."""

    run_id: str
    benchmark_id: str
    grader: str
