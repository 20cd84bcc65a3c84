"""A suite and the comparisons of the past -> what a comparison on that suite could find, benchmark by benchmark.

Without a past comparison of a benchmark its discordance is the one assumed, and each line says which it was.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eval_tasks.records import PairedTest, Suite
from eval_tasks.scoring import metric_of
from eval_tasks.stats.planning import Resolution, binary_resolution, continuous_resolution
from eval_tasks.stats.power import discordance

if TYPE_CHECKING:
    from eval_tasks.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedBenchmark:
    """One line of a plan: `basis` says where the discordance (or spread) comes from. `mde` None: nothing known.

    `n_needed`: items that the target takes; None without a target, or for a unit that is not points.
    """

    suite: str
    tier: str
    benchmark: str
    metric: str
    unit: str
    n: int
    basis: str
    discordance: float | None
    mde: float | None
    n_needed: int | None
    resolves_target: bool | None


def plan_resolution(
    store: Store, suites: Iterable[Suite], *, assumed: float, target: float | None, alpha: float = 0.05
) -> list[PlannedBenchmark]:
    """A line per suite and benchmark, on its primary metric. `assumed`: discordance where no comparison shows it."""
    past = [test for comparison in store.catalog.comparisons() for test in comparison.tests if not test.not_tested]
    lines = []
    for suite in suites:
        for entry in suite.entries:
            version = store.catalog.benchmark_by_id(entry.benchmark_id)
            n = min(entry.n_items or version.n_items, version.n_items)
            info = metric_of(version, version.primary_metric)
            same = [t for t in past if t.benchmark == entry.benchmark and t.metric == version.primary_metric]
            wanted = target if info.unit == "fraction" else None
            psi, basis, found = (
                _binary(n, same, assumed, wanted, alpha) if info.binary else _continuous(n, same, wanted, alpha)
            )
            lines.append(
                PlannedBenchmark(
                    suite=f"{suite.name}@{suite.version}",
                    tier=suite.tier,
                    benchmark=f"{entry.benchmark}@{entry.version}",
                    metric=version.primary_metric,
                    unit=info.unit,
                    n=n,
                    basis=basis,
                    discordance=psi,
                    mde=found.mde if found else None,
                    n_needed=found.n_needed if found else None,
                    resolves_target=None if found is None or wanted is None else found.mde <= wanted,
                )
            )
    return lines


def _binary(
    n: int, past: list[PairedTest], assumed: float, target: float | None, alpha: float
) -> tuple[float, str, Resolution]:
    seen = [t for t in past if t.n_discordant is not None and t.n_pairs]
    psi, basis = assumed, "assumed"
    if seen:
        pairs = sum(t.n_pairs for t in seen)
        psi = discordance(sum(t.n_discordant or 0 for t in seen), pairs)
        basis = f"observed in {len(seen)} past comparisons, {pairs:,} pairs"
    return psi, basis, binary_resolution(n, psi, target=target, alpha=alpha)


def _continuous(
    n: int, past: list[PairedTest], target: float | None, alpha: float
) -> tuple[None, str, Resolution | None]:
    """From the mean variance of item differences in past comparisons, by their items."""
    spreads = [(t.n_pairs, t.se**2 * t.n_pairs) for t in past if t.se is not None]
    if not spreads:
        return None, "no past comparison shows the spread of its differences", None
    pairs = sum(k for k, _ in spreads)
    sd = math.sqrt(sum(k * variance for k, variance in spreads) / pairs)
    basis = f"observed in {len(spreads)} past comparisons, {pairs:,} pairs"
    return None, basis, continuous_resolution(n, sd, target=target, alpha=alpha)
