"""A judge's YAML file in, a checked `JudgeSpec` out. Opens no checkpoint and asks no endpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from eval_tasks.errors import did_you_mean
from eval_tasks.records import EndpointAccess, EndpointConfig, EngineConfig, PromptTemplate
from eval_tasks.records.benchmark import Policy
from eval_tasks.records.grader import JudgeKind
from eval_tasks.registry.benchmark_spec import ReasoningSpec, Template
from eval_tasks.registry.templates import is_template, names_in
from eval_tasks.registry.yaml_file import NAME, Section, load_yaml

FIELDS = ("question", "prompt", "target", "references", "output", "item")
"""What a judge's prompt is rendered over."""


class JudgePromptSpec(Section):
    """How a stored output becomes the judge's prompt; a template over `FIELDS`."""

    item: Template
    system: Template = ""
    chat: Policy = "never"
    bos: Policy = "auto"
    stop: list[str] = Field(default_factory=list)

    @field_validator("item", "system")
    @classmethod
    def _known_fields(cls, template: str) -> str:
        for name in sorted(names_in(template) - set(FIELDS)):
            raise ValueError(f"no field {name!r} to render; {did_you_mean(name, FIELDS)}")
        return template


class JudgeEngineSpec(Section):
    """The engine's configuration; the environment that runs it must have the device."""

    device: Literal["cpu", "cuda"] = "cpu"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    attention: Literal["tile", "reference"] = "tile"
    tensor_parallel: int = Field(default=1, ge=1)
    max_context: int | None = Field(default=None, ge=1)

    def record(self) -> EngineConfig:
        """As a record; long common beginnings of prompts are read once."""
        prefix: Literal["none", "shared"] = "none" if self.attention == "reference" else "shared"
        return EngineConfig(**self.model_dump(), prefix=prefix)


class EndpointSpec(Section):
    """An OpenAI-compatible chat endpoint. `api_key_env` names the variable that holds the key; never the key."""

    base_url: str
    model: str = Field(min_length=1)
    api_key_env: str = Field(default="", pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$")
    seed: int = 0
    timeout_seconds: float = Field(default=120.0, gt=0)
    tries: int = Field(default=6, ge=1)
    concurrency: int = Field(default=4, ge=1, le=64)

    @field_validator("base_url")
    @classmethod
    def _plain(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("write the URL that /chat/completions is added to, such as https://host/v1")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("a URL without credentials or query: the key goes into the variable of api_key_env")
        return url.rstrip("/")

    def record(self) -> EndpointConfig:
        """As a record."""
        return EndpointConfig(base_url=self.base_url, model=self.model, seed=self.seed)

    def access(self) -> EndpointAccess:
        """What no verdict depends on."""
        return EndpointAccess(
            api_key_env=self.api_key_env,
            timeout_seconds=self.timeout_seconds,
            tries=self.tries,
            concurrency=self.concurrency,
        )


class VerdictSpec(Section):
    """How a reply is read: the first group of `pattern` on the last line that it matches."""

    pattern: str | None = None
    max_tokens: int = Field(default=512, ge=1)
    reasoning: ReasoningSpec | None = None


class JudgeSpec(Section):
    """A whole judge file."""

    name: str = Field(pattern=NAME)
    version: str = Field(min_length=1, max_length=100, pattern=r"^[^@+/\s]+$")
    kind: JudgeKind
    description: str = ""
    checkpoint: str | None = None
    engine: JudgeEngineSpec | None = None
    endpoint: EndpointSpec | None = None
    prompt: JudgePromptSpec
    answers: dict[str, float]
    verdict: VerdictSpec | None = None

    @model_validator(mode="before")
    @classmethod
    def _answers_are_text(cls, values: Any) -> Any:
        answers = values.get("answers") if isinstance(values, dict) else None
        for answer in answers if isinstance(answers, dict) else ():
            if not isinstance(answer, str):
                raise ValueError(f"answers: {answer!r} is no text to YAML; quote it")
        return values

    @model_validator(mode="after")
    def _kind_fits(self) -> JudgeSpec:
        given = {"checkpoint": self.checkpoint, "engine": self.engine, "endpoint": self.endpoint}
        needed, own = (
            ("endpoint", {"endpoint"}) if self.kind == "endpoint" else ("checkpoint", {"checkpoint", "engine"})
        )
        if given[needed] is None:
            raise ValueError(f"kind {self.kind!r} needs {needed!r}")
        if strange := [name for name, value in given.items() if value is not None and name not in own]:
            raise ValueError(f"{strange[0]!r} does not go with kind {self.kind!r}")
        if self.kind == "logprob" and (self.verdict is not None or self.prompt.stop):
            raise ValueError("'verdict' and 'prompt.stop' are for replies: kind 'logprob' writes none")
        if self.kind == "endpoint" and (self.prompt.chat, self.prompt.bos) != ("never", "auto"):
            raise ValueError("prompt.chat and prompt.bos are the endpoint's own business; leave them out")
        for answer in self.answers:
            if is_template(answer):
                raise ValueError(f"answers: {answer!r} is a template, and an answer is plain text")
        return self

    def template(self) -> PromptTemplate:
        """The judge's prompt as a benchmark's template; for logprobs with the answers as choices."""
        return PromptTemplate(
            item=self.prompt.item,
            system=self.prompt.system,
            choices=tuple(self.answers) if self.kind == "logprob" else (),
            target_delimiter="",
            chat=self.prompt.chat,
            bos=self.prompt.bos,
            stop=tuple(self.prompt.stop),
        )


def load_judge_file(path: Path) -> JudgeSpec:
    """The judge in a YAML file. Raises UserError naming file, field, value and close names."""
    return load_yaml(path, JudgeSpec)
