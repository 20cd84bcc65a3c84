"""A decision rule's YAML file in, a checked `RuleSpec` out. Does not know when it is registered."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator, model_validator

from eval_tasks.records import DecisionRule
from eval_tasks.records.verdict import Multiplicity
from eval_tasks.registry.yaml_file import NAME, Section, load_yaml


class RuleSpec(Section):
    """What decides a comparison: `components` (benchmark: weight, adding up to 1) or `primary` (several, each apart).

    `margin` is a fraction. Without `multiplicity` one p-value is not adjusted, and several are by Holm.
    """

    name: str = Field(pattern=NAME)
    kind: Literal["superiority", "superiority_by_margin", "non_inferiority", "point_and_p"]
    metric: str = Field(min_length=1)
    components: dict[str, float] = Field(default_factory=dict)
    primary: list[str] = Field(default_factory=list)
    multiplicity: Multiplicity | None = None
    seeds: int = Field(default=1, ge=1)
    alpha: float = Field(default=0.05, gt=0, lt=0.5)
    margin: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    direction: Literal["higher", "lower"] = "higher"
    description: str = ""

    @field_validator("components")
    @classmethod
    def _weights(cls, components: dict[str, float]) -> dict[str, float]:
        if any(not weight > 0 for weight in components.values()):
            raise ValueError("every weight must be above 0")
        total = math.fsum(components.values())
        if components and not math.isclose(total, 1.0, abs_tol=1e-9):
            raise ValueError(f"the weights must add up to 1, not to {total:g}")
        return components

    @field_validator("primary")
    @classmethod
    def _each_once(cls, primary: list[str]) -> list[str]:
        if len(primary) == 1:
            raise ValueError(f"one primary benchmark is written as components: {{{primary[0]}: 1.0}}")
        if len(set(primary)) < len(primary):
            raise ValueError("a benchmark is primary once")
        return primary

    @model_validator(mode="after")
    def _decides(self) -> RuleSpec:
        if bool(self.components) == bool(self.primary):
            raise ValueError(
                "give either components (benchmark: weight) or primary (a list of benchmarks that are decided apart)"
            )
        if self.kind == "non_inferiority" and self.margin == 0:
            raise ValueError("non_inferiority needs a margin above 0")
        return self

    def record(self, registered_at: str) -> DecisionRule:
        """As a record, registered at a UTC time (ISO 8601)."""
        return DecisionRule(
            name=self.name,
            kind=self.kind,
            metric=self.metric,
            components=dict(sorted(self.components.items())),
            alpha=self.alpha,
            margin=self.margin,
            direction=self.direction,
            registered_at=registered_at,
            primary=tuple(sorted(self.primary)),
            multiplicity=self.multiplicity or ("holm" if self.primary else "none"),
            seeds=self.seeds,
        )


def load_rule_file(path: Path) -> RuleSpec:
    """The rule in a YAML file. Raises UserError naming file, field, value and close names."""
    return load_yaml(path, RuleSpec)
