"""A suite's YAML file in, a checked `SuiteSpec` out. Does not know which benchmarks are registered."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, field_validator

from eval_tasks.records.benchmark import Tier
from eval_tasks.registry.yaml_file import NAME, Section, load_yaml


class SuiteEntrySpec(Section):
    """One benchmark by name; without `version` the newest registered. `n_items`: a fixed choice of that many items."""

    name: str
    version: str | None = None
    n_items: int | None = Field(default=None, ge=1)
    seed: int = 0


class SuiteSpec(Section):
    """A whole suite file."""

    name: str = Field(pattern=NAME)
    version: str = Field(min_length=1)
    tier: Tier
    description: str = ""
    benchmarks: list[SuiteEntrySpec] = Field(min_length=1)

    @field_validator("benchmarks")
    @classmethod
    def _each_once(cls, entries: list[SuiteEntrySpec]) -> list[SuiteEntrySpec]:
        names = [entry.name for entry in entries]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"a benchmark stands once in a suite; twice here: {', '.join(twice)}")
        return entries


def load_suite_file(path: Path) -> SuiteSpec:
    """The suite in a YAML file. Raises UserError naming file, field, value and close names."""
    return load_yaml(path, SuiteSpec)
