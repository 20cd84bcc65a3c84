"""What is known of noise beside the items' -> the variances that each benchmark's difference carries, by name.

Knows no store: `measured_here` and `seed_arms` say where the figures come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from eval_tasks.records import VarianceTerm
from eval_tasks.records.variance import Lineage, Standing
from eval_tasks.stats.recipes import Added, CommonVariance, Spread, both_arms, extrapolated, moderated


@dataclass(frozen=True, slots=True, kw_only=True)
class Instrument:
    """What the engine, or the environments, do to one benchmark's difference. `added` is None where that is nothing.

    `note` goes to the benchmark's test.
    """

    term: VarianceTerm
    added: Added | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedRuns:
    """One benchmark over runs that differ by their training seed.

    `spreads`: one of the runs of a recipe; of each arm; or of the differences of runs with one seed. `scores`: by run,
    in the same order for every benchmark; empty where only a variance is known.
    """

    unit: str
    spreads: tuple[Spread, ...]
    scores: tuple[tuple[float, ...], ...] = ()

    def flips(self, n: int) -> float:
        """Variance of one run's score on `n` items from item flips alone."""
        return float(np.mean([s.psi / (2 * n) if s.psi > 0 else s.flips for s in self.spreads]))


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedNoise:
    """How training again moves the scores. `design`: a ``study`` of other runs, the ``arms`` themselves, or ``pairs``.

    `runs` has benchmarks beyond those compared where a study has them: they inform the shared prior. `absent`: why a
    compared benchmark is not there. `origin` and `standing` are those of the terms; `reference` names a study.
    """

    design: Literal["study", "arms", "pairs"]
    runs: Mapping[str, SeedRuns]
    standing: Standing
    origin: str
    reference: str = ""
    absent: Mapping[str, str] = field(default_factory=dict)

    @property
    def named(self) -> str:
        """The source in a few words, EXTRAPOLATED said where it is."""
        name = f"seed study {self.reference}" if self.reference else "of the arms' own runs"
        return f"{name}, EXTRAPOLATED" if self.standing == "EXTRAPOLATED" else name

    def by_benchmark(self) -> dict[str, Added]:
        """Each benchmark's moderated variance, as the difference carries it."""
        result: dict[str, Added] = {}
        for unit in dict.fromkeys(runs.unit for runs in self.runs.values()):
            names = [name for name, runs in self.runs.items() if runs.unit == unit]
            own = [self._own(self.runs[name].spreads) for name in names]
            shrunk = moderated([variance for variance, _ in own])
            for name, variance, (_, times) in zip(names, shrunk, own, strict=True):
                result[name] = Added(variance=self._scaled(variance), times=times)
        return result

    def of_composite(self, weights: Mapping[str, float]) -> Added | str:
        """The composite's own seed variance, which its benchmarks' do not add up to; or why it is not known."""
        missing = [name for name in weights if name not in self.runs]
        if missing:
            return self.absent.get(missing[0], f"{missing[0]} has no seed variance")
        unscored = [name for name in weights if not self.runs[name].scores]
        if unscored:
            return (
                f"{self.reference} has variances of {', '.join(unscored)} and no scores by seed, and variances of "
                "benchmarks do not add up to a composite's"
            )
        groups = list(zip(*(self.runs[name].scores for name in weights), strict=True))
        if any(len({len(scores) for scores in group}) > 1 for group in groups):
            return f"{self.reference or 'an arm'} has other runs of one component than of another"
        spreads = []
        for number, group in enumerate(groups):
            mixed = np.array(list(weights.values())) @ np.array(group)
            flips = sum(w**2 * self.runs[name].spreads[number].flips for name, w in weights.items())
            spreads.append(Spread(n_runs=len(mixed), raw=float(np.var(mixed, ddof=1)), psi=0.0, flips=flips))
        variance, times = self._own(spreads)
        return Added(variance=self._scaled(variance), times=times)

    def _own(self, spreads: Sequence[Spread]) -> tuple[CommonVariance, float]:
        if len(spreads) == 2:
            return both_arms(*spreads)
        (one,) = spreads
        variance = CommonVariance(total=one.raw, flips=one.flips, df=one.n_runs - 1)
        return variance, 2.0 if self.design == "study" else 1 / one.n_runs

    def _scaled(self, variance: CommonVariance) -> CommonVariance:
        return extrapolated(variance) if self.standing == "EXTRAPOLATED" else variance


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """All that is known for one comparison. `unanswerable`: why the recipes cannot be compared, '' where they can."""

    lineage: Lineage
    instruments: Mapping[str, Instrument] = field(default_factory=dict)
    seeds: SeedNoise | None = None
    unanswerable: str = ""

    def instrument(self, benchmark: str) -> tuple[Added, ...]:
        """The instrument's variance of a benchmark; none where it is nothing, or not known."""
        found = self.instruments.get(benchmark)
        return (found.added,) if found is not None and found.added is not None else ()

    def instrument_of_composite(self, weights: Mapping[str, float]) -> tuple[Added, ...]:
        """The instrument's variance of a composite: the benchmarks' deviations added up, as if all moved together."""
        parts = [(w, added) for name, w in weights.items() for added in self.instrument(name)]
        if not parts:
            return ()
        total = sum(w * added.variance.total**0.5 for w, added in parts) ** 2
        common = sum(w * added.sd for w, added in parts) ** 2
        df = min(added.variance.df for _, added in parts)
        return (Added(variance=CommonVariance(total=total, flips=max(0.0, total - common), df=df)),)


def items_term(se: float | None, n: int) -> VarianceTerm:
    """The items' own part of a difference."""
    if se is None:
        return VarianceTerm(source="items", standing="not measured", sd=None, origin="fewer than two items or clusters")
    return VarianceTerm(source="items", standing="measured", sd=se, origin=f"the differences of {n:,} items")


def seed_term(noise: SeedNoise | None, added: Added | None, why: str) -> VarianceTerm:
    """The training seed's part; `why` it is not known."""
    if noise is None or added is None:
        return VarianceTerm(source="training seed", standing="not measured", sd=None, origin=why)
    return VarianceTerm(source="training seed", standing=noise.standing, sd=added.sd, origin=noise.origin)
