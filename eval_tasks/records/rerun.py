"""One checkpoint evaluated twice: what the instrument itself does to the scores, in one environment or between two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from eval_tasks.digests import digest_value, short_id
from eval_tasks.records.codec import to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class RerunDifference:
    """One metric of one benchmark: score of B less that of A on `n` items, and the paired error of item flips alone."""

    benchmark: str
    metric: str
    n: int
    delta: float
    se_flip: float
    unit: str = "fraction"


@dataclass(frozen=True, slots=True, kw_only=True)
class RerunComparison:
    """Two runs of the same checkpoint and benchmarks. `measured_at` is UTC, ISO 8601.

    Equal fingerprints measure the engine (a perturbed plan, say); different ones the effect between environments. Both
    run ids are empty where the figures were imported.
    """

    env_a: str
    env_b: str
    run_a: str = ""
    run_b: str = ""
    checkpoint_id: str = ""
    source: str = ""
    measured_at: str
    differences: tuple[RerunDifference, ...]

    @property
    def kind(self) -> Literal["engine", "environment"]:
        """What was measured."""
        return "engine" if self.env_a == self.env_b else "environment"

    @property
    def rerun_id(self) -> str:
        """Digest of the content: the same measurement recorded twice is one."""
        return short_id(digest_value(to_json(self)))
