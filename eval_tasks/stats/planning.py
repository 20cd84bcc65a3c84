"""Planned items and seeds -> what a comparison could find, and what a wanted difference would take.

Before anything is spent: no score is needed, only how often two such runs differ. Differences are fractions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from eval_tasks.errors import UserError
from eval_tasks.stats.power import POWER, mde_from_se, paired_items_needed, paired_mde

MOST_SEEDS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """Of `n` items: the smallest true difference found at 80 % power, and the items that `target` takes (or None)."""

    n: int
    mde: float
    n_needed: int | None


def binary_resolution(n: int, psi: float, *, target: float | None, alpha: float = 0.05) -> Resolution:
    """Right-or-wrong items of which two such runs disagree on a share psi. Raises UserError for impossible numbers."""
    _check(n, target)
    if not 0 < psi <= 1:
        raise UserError(f"discordance {psi:g}; it is the share of items two runs disagree on, above 0 and at most 1")
    needed = None if target is None else math.ceil(paired_items_needed(target, psi, alpha))
    return Resolution(n=n, mde=paired_mde(n, psi, alpha), n_needed=needed)


def continuous_resolution(n: int, sd: float, *, target: float | None, alpha: float = 0.05) -> Resolution | None:
    """Items whose differences between two such runs have the standard deviation `sd`; None for fewer than two items."""
    _check(n, target)
    if n < 2 or sd <= 0:
        return None
    mde = mde_from_se(sd / math.sqrt(n), n - 1, alpha)
    return Resolution(n=n, mde=mde, n_needed=None if target is None else math.ceil(n * (mde / target) ** 2))


def seeds_mde(n_seeds: int, seed_sd: float, alpha: float = 0.05, power: float = POWER) -> float:
    """Smallest difference between two recipes found with `n_seeds` runs of each, whatever the number of items.

    seed_sd: standard deviation of a score over seeds, item noise and all. t on 2 (n_seeds - 1) degrees.
    """
    if n_seeds < 2:
        raise UserError(f"{n_seeds} seeds a recipe; the spread between seeds is seen from 2 on")
    return mde_from_se(seed_sd * math.sqrt(2 / n_seeds), 2 * (n_seeds - 1), alpha, power)


def seeds_needed(target: float, seed_sd: float, alpha: float = 0.05, power: float = POWER) -> int | None:
    """Runs of each recipe that find a true difference `target`; None when more than 1,000."""
    _check(1, target)
    low, high = 2, MOST_SEEDS
    if seeds_mde(high, seed_sd, alpha, power) > target:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if seeds_mde(middle, seed_sd, alpha, power) <= target else (middle + 1, high)
    return low


def _check(n: int, target: float | None) -> None:
    if n < 1:
        raise UserError(f"{n} items; a plan needs at least 1")
    if target is not None and not 0 < target <= 1:
        raise UserError(f"a target of {100 * target:g} points; it lies above 0 and is at most 100")
