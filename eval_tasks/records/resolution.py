"""What a comparison could find: planned before anything is spent, and said beside what was found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PastPairs:
    """How two runs differed on a benchmark's metric in all past comparisons, pooled over their pairs of items.

    `n_discordant` of `n_pairs` right-or-wrong pairs differed in `n_comparisons` comparisons. `variance`: mean variance
    of item differences, ``n se^2``, over `n_spread_pairs` pairs of `n_spread` comparisons; None where none has one.
    """

    n_comparisons: int = 0
    n_pairs: int = 0
    n_discordant: int = 0
    n_spread: int = 0
    n_spread_pairs: int = 0
    variance: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedResolution:
    """One benchmark of a suite, on `n` items: the smallest true difference a paired comparison finds at 80 % power.

    `basis` says where `discordance` (or the spread of a loss) comes from. `mde` None: nothing is known. `n_needed`:
    items that the target takes; None without a target, or for a unit that is not points. `seed_sd`: standard deviation
    of the score over seeds in study `seed_study`; with it `seeds_mde`, what `seeds` runs of each recipe show, and
    `seeds_needed` for the target. `device_seconds`: what evaluating one arm takes at the pace of past runs of the
    suite, `device_seconds_needed` on the items of the target.
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
    seeds: int | None = None
    seed_sd: float | None = None
    seed_study: str = ""
    seeds_mde: float | None = None
    seeds_needed: int | None = None
    device_seconds: float | None = None
    device_seconds_needed: float | None = None
