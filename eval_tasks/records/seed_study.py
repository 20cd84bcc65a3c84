"""What training again with another seed does to the scores: K runs of one recipe, measured here or published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from eval_tasks.digests import digest_value, short_id
from eval_tasks.records.codec import to_json

FEWEST_RUNS = 3
"""Runs of a study, and of an arm that has several.

On two, equal recipes were called different on 8 % of single benchmarks (simulated), on three on 6 %; less with several.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How large a model is and how far it was trained; None where nobody said. `step` counts for want of tokens."""

    parameters: int | None = None
    tokens: int | None = None
    step: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StudiedBenchmark:
    """One metric of one benchmark over `n_seeds` runs on `n` items; `version` is empty where nobody said.

    `s2_raw`: sample variance of the score over the seeds. `psi_seed`: mean over pairs of seeds and items of the squared
    difference of two scores, for right-or-wrong items the share on which two seeds disagree. `flips`: the part of
    `s2_raw` that comes of items flipping one by one; None: ``psi_seed / (2 n)``. `scores`: by seed, in the order of the
    study's runs; empty where only the variance was published.
    """

    benchmark: str
    metric: str
    n: int
    n_seeds: int
    s2_raw: float
    psi_seed: float
    version: str = ""
    unit: str = "fraction"
    flips: float | None = None
    scores: tuple[float, ...] = ()

    @property
    def flip_variance(self) -> float:
        """The variance from item flips alone, which a paired error already holds."""
        return self.psi_seed / (2 * self.n) if self.flips is None else self.flips


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedStudy:
    """K runs of one recipe with different seeds. Times are UTC, ISO 8601; a date may stand for `measured_at`.

    `runs`: the ids of the runs it was computed from; none for one that was imported, whose `source` says where it was
    published. The same name with other content is a new `version`.
    """

    name: str
    version: int = 1
    origin: Literal["runs", "imported"]
    source: str
    scale: Scale
    benchmarks: tuple[StudiedBenchmark, ...]
    measured_at: str
    recorded_at: str
    runs: tuple[str, ...] = ()

    @property
    def study_id(self) -> str:
        """Digest of the content: name, version and time of recording apart."""
        content = to_json(self)
        for name in ("name", "version", "recorded_at"):
            content.pop(name)
        return short_id(digest_value(content))

    @property
    def reference(self) -> str:
        """``name@version``, as reports and commands write it."""
        return f"{self.name}@{self.version}"

    def of(self, benchmark: str, metric: str) -> StudiedBenchmark | None:
        """What the study has of a metric of a benchmark, by name."""
        return next((b for b in self.benchmarks if (b.benchmark, b.metric) == (benchmark, metric)), None)
