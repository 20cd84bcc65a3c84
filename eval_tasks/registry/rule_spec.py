"""A decision rule's YAML file in, a checked `RuleSpec` out. Does not know when it is registered."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from eval_tasks.records import DecisionRule
from eval_tasks.registry.yaml_file import NAME, Section, load_yaml


class RuleSpec(Section):
    """What decides a comparison. `components` maps benchmarks to weights that add up to 1; `margin` is a fraction."""

    name: str = Field(pattern=NAME)
    kind: Literal["superiority", "superiority_by_margin", "non_inferiority", "point_and_p"]
    metric: str = Field(min_length=1)
    components: dict[str, float] = Field(min_length=1)
    alpha: float = Field(default=0.05, gt=0, lt=1)
    margin: float = Field(default=0.0, ge=0)
    direction: Literal["higher", "lower"] = "higher"
    description: str = ""

    @field_validator("components")
    @classmethod
    def _weights(cls, components: dict[str, float]) -> dict[str, float]:
        if any(not weight > 0 for weight in components.values()):
            raise ValueError("every weight must be above 0")
        total = math.fsum(components.values())
        if not math.isclose(total, 1.0, abs_tol=1e-9):
            raise ValueError(f"the weights must add up to 1, not to {total:g}")
        return components

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
        )


def load_rule_file(path: Path) -> RuleSpec:
    """The rule in a YAML file. Raises UserError naming file, field, value and close names."""
    return load_yaml(path, RuleSpec)
