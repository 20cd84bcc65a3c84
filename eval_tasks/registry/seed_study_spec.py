"""A seed study's YAML file in, a checked `SeedStudySpec` out. Reads no scores and knows no catalog."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
from pydantic import Field, field_validator, model_validator

from eval_tasks.records import Scale, SeedStudy, StudiedBenchmark
from eval_tasks.records.seed_study import FEWEST_RUNS
from eval_tasks.registry.yaml_file import NAME, Section, load_yaml


class ScaleSpec(Section):
    """How large the models are and how far they were trained. What is not stated is not taken to be the same."""

    parameters: int | None = Field(default=None, ge=1)
    tokens: int | None = Field(default=None, ge=1)
    step: int | None = Field(default=None, ge=1)


class StudiedSpec(Section):
    """One metric of one benchmark on `n` items: `scores` by seed, or their standard deviation `sd` over `n_seeds` runs.

    `discordance`: share of items on which two seeds disagree (for other than right or wrong: mean squared difference of
    an item's two scores). Without it all of the variance counts as common to the items, which is the cautious reading.
    """

    benchmark: str = Field(min_length=1)
    metric: str = Field(min_length=1)
    n: int = Field(ge=1)
    version: str = ""
    unit: str = Field(default="fraction", min_length=1)
    scores: list[float] = Field(default_factory=list)
    sd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    n_seeds: int | None = Field(default=None, ge=FEWEST_RUNS)
    discordance: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    @field_validator("scores")
    @classmethod
    def _enough(cls, scores: list[float]) -> list[float]:
        if 0 < len(scores) < FEWEST_RUNS:
            raise ValueError(f"a study has {FEWEST_RUNS} runs at least: fewer say too little of how seeds differ")
        if not all(np.isfinite(scores)):
            raise ValueError("a score is no finite number; leave that run out, or find its score")
        return scores

    @model_validator(mode="after")
    def _says_how_far(self) -> StudiedSpec:
        if bool(self.scores) == (self.sd is not None):
            raise ValueError("give either scores (one a seed) or sd with n_seeds")
        if self.sd is not None and self.n_seeds is None:
            raise ValueError("sd needs n_seeds, the number of runs it was computed from")
        if self.scores and self.n_seeds not in (None, len(self.scores)):
            raise ValueError(f"n_seeds is {self.n_seeds} and there are {len(self.scores)} scores; leave n_seeds out")
        if self.unit == "fraction":
            if any(not 0 <= score <= 1 for score in self.scores):
                raise ValueError("scores of unit fraction lie between 0 and 1: 61.5 points are 0.615")
            if self.sd is not None and self.sd > 0.5:
                raise ValueError(f"an sd of {self.sd:g} is no fraction's: 0.6 points are 0.006")
            if self.discordance is not None and self.discordance > 1:
                raise ValueError("discordance is a share of the items, at most 1")
        return self

    def record(self) -> StudiedBenchmark:
        """As a record."""
        return StudiedBenchmark(
            benchmark=self.benchmark,
            metric=self.metric,
            n=self.n,
            n_seeds=len(self.scores) or self.n_seeds or 0,
            s2_raw=float(np.var(self.scores, ddof=1)) if self.scores else (self.sd or 0.0) ** 2,
            psi_seed=self.discordance or 0.0,
            version=self.version,
            unit=self.unit,
            flips=0.0 if self.discordance is None else None,
            scores=tuple(self.scores),
        )


class SeedStudySpec(Section):
    """A whole file: published figures in `benchmarks`, or in `score_files` a file of item scores for each run.

    `score_files` are as `compare --scores` reads them, paths beside the YAML file; `metric` and `versions` (by
    benchmark) say what their scores are.
    """

    name: str = Field(pattern=NAME)
    source: str = Field(min_length=1)
    measured_at: datetime.date
    scale: ScaleSpec = Field(default_factory=ScaleSpec)
    benchmarks: list[StudiedSpec] = Field(default_factory=list)
    score_files: list[str] = Field(default_factory=list)
    metric: str = ""
    versions: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_kind(self) -> SeedStudySpec:
        if bool(self.benchmarks) == bool(self.score_files):
            raise ValueError("give either benchmarks (published figures) or score_files (a file of item scores a run)")
        names = [(b.benchmark, b.metric) for b in self.benchmarks]
        twice = sorted({" ".join(name) for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"a metric of a benchmark stands once in a study; twice here: {', '.join(twice)}")
        if self.score_files and not self.metric:
            raise ValueError("score_files need metric: what their scores are, such as acc")
        if len(set(self.score_files)) < len(self.score_files):
            raise ValueError("a score file is named twice; each is one run's")
        if 0 < len(self.score_files) < FEWEST_RUNS:
            raise ValueError(f"a study has {FEWEST_RUNS} runs at least: fewer say too little of how seeds differ")
        return self

    def record(self, recorded_at: str, measured: tuple[StudiedBenchmark, ...] = ()) -> SeedStudy:
        """As a record, at a UTC time (ISO 8601); `measured`: what was computed from its score files."""
        return SeedStudy(
            name=self.name,
            origin="imported",
            source=self.source,
            scale=Scale(parameters=self.scale.parameters, tokens=self.scale.tokens, step=self.scale.step),
            benchmarks=measured or tuple(b.record() for b in self.benchmarks),
            measured_at=self.measured_at.isoformat(),
            recorded_at=recorded_at,
        )


def load_seed_study_file(path: Path) -> SeedStudySpec:
    """The study in a YAML file. Raises UserError naming file, field, value and close names."""
    return load_yaml(path, SeedStudySpec)
