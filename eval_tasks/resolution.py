"""Benchmarks, numbers of items and the catalog's past -> what a paired comparison could find, benchmark by benchmark.

How often two runs differ, how far seeds move a score and how long an item takes are read from the catalog as sums; no
score file is opened. Without a past comparison the discordance is the one assumed, and each line says which it was.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eval_tasks.records import BenchmarkVersion, PastPairs, PlannedResolution, Run, SeedStudy, Suite
from eval_tasks.scoring import metric_of
from eval_tasks.stats.planning import Resolution, binary_resolution, continuous_resolution, seeds_mde, seeds_needed
from eval_tasks.stats.power import discordance

if TYPE_CHECKING:
    from eval_tasks.store import Store

ASSUMED_DISCORDANCE = 0.10
SEEDS = 3
UNKNOWN_SPREAD = "no past comparison shows the spread of its differences"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked of a plan. `assumed`: discordance where no comparison shows it. `target`: a difference, a fraction.

    `seeds`: runs of each recipe, where a seed study says how far they move a score.
    """

    assumed: float = ASSUMED_DISCORDANCE
    target: float | None = None
    alpha: float = 0.05
    seeds: int = SEEDS


def suite_resolution(store: Store, suites: Sequence[Suite], asked: Asked) -> list[PlannedResolution]:
    """A line per suite and benchmark, on its primary metric, with what evaluating an arm takes."""
    past = store.catalog.past_pairs([entry.benchmark for suite in suites for entry in suite.entries])
    studies = store.catalog.seed_studies()
    lines = []
    for suite in suites:
        pace = store.catalog.seconds_per_item(suite.name)
        for entry in suite.entries:
            version = store.catalog.benchmark_by_id(entry.benchmark_id)
            n = min(entry.n_items or version.n_items, version.n_items)
            key = (entry.benchmark, version.primary_metric)
            lines.append(
                _line(
                    version,
                    n,
                    past.get(key, PastPairs()),
                    asked,
                    suite=f"{suite.name}@{suite.version}",
                    tier=suite.tier,
                    study=_study(studies, *key),
                    pace=pace,
                )
            )
    return lines


def run_resolution(store: Store, run: Run, sizes: Iterable[tuple[BenchmarkVersion, int]]) -> list[PlannedResolution]:
    """What a comparison of this run with another on the same items finds; `sizes`: items with a score, by benchmark.

    Only what past comparisons show: nothing is assumed, and a benchmark without any has no line.
    """
    sizes = [(version, n) for version, n in sizes if n > 0]
    past = store.catalog.past_pairs([version.name for version, _ in sizes])
    suite = f"{run.request.suite}@{run.request.suite_version}"
    found = [
        _line(version, n, past[version.name, version.primary_metric], Asked(), suite=suite, tier=run.tier)
        for version, n in sizes
        if (version.name, version.primary_metric) in past
    ]
    return [line for line in found if line.mde is not None and line.basis != "assumed"]


def _line(
    version: BenchmarkVersion,
    n: int,
    past: PastPairs,
    asked: Asked,
    *,
    suite: str,
    tier: str,
    study: tuple[str, float] | None = None,
    pace: float | None = None,
) -> PlannedResolution:
    info = metric_of(version, version.primary_metric)
    target = asked.target if info.unit == "fraction" else None
    # Items of a cluster flip together: the errors of past comparisons know that, the share that flipped does not.
    by_flips = info.binary and (version.cluster_key is None or not past.n_spread)
    psi, basis, found = (_binary if by_flips else _continuous)(n, past, asked, target)
    if by_flips and version.cluster_key is not None:
        basis += ", clusters ignored"
    name, sd = study if study is not None and study[1] > 0 else ("", None)
    n_needed = found.n_needed if found else None
    return PlannedResolution(
        suite=suite,
        tier=tier,
        benchmark=f"{version.name}@{version.version}",
        metric=version.primary_metric,
        unit=info.unit,
        n=n,
        basis=basis,
        discordance=psi,
        mde=found.mde if found else None,
        n_needed=n_needed,
        resolves_target=None if found is None or target is None else found.mde <= target,
        seeds=None if sd is None else asked.seeds,
        seed_sd=sd,
        seed_study=name,
        seeds_mde=None if sd is None else seeds_mde(asked.seeds, sd, asked.alpha),
        seeds_needed=None if sd is None or target is None else seeds_needed(target, sd, asked.alpha),
        device_seconds=None if pace is None else n * pace,
        device_seconds_needed=None if pace is None or n_needed is None else n_needed * pace,
    )


def _study(studies: Sequence[SeedStudy], benchmark: str, metric: str) -> tuple[str, float] | None:
    """The study of it that was recorded last, and the standard deviation of a score over its seeds."""
    known = [(study, found) for study in studies if (found := study.of(benchmark, metric)) is not None]
    if not known:
        return None
    study, found = max(known, key=lambda pair: pair[0].recorded_at)
    return study.reference, math.sqrt(found.s2_raw)


def _binary(n: int, past: PastPairs, asked: Asked, target: float | None) -> tuple[float | None, str, Resolution | None]:
    psi, basis = asked.assumed, "assumed"
    if past.n_pairs:
        psi = discordance(past.n_discordant, past.n_pairs)
        basis = _observed(past.n_comparisons, past.n_pairs)
    return psi, basis, binary_resolution(n, psi, target=target, alpha=asked.alpha)


def _continuous(
    n: int, past: PastPairs, asked: Asked, target: float | None
) -> tuple[float | None, str, Resolution | None]:
    """From the mean variance of item differences in past comparisons, by their items."""
    if past.variance is None:
        return None, UNKNOWN_SPREAD, None
    found = continuous_resolution(n, math.sqrt(past.variance), target=target, alpha=asked.alpha)
    return None, _observed(past.n_spread, past.n_spread_pairs), found


def _observed(n_comparisons: int, n_pairs: int) -> str:
    return f"observed in {n_comparisons} past comparison{'' if n_comparisons == 1 else 's'}, {n_pairs:,} pairs"
