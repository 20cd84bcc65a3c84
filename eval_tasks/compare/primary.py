"""A tested benchmark -> what a decision rule decides on: its interval at the rule's level, p, and whether missing items
could undo it."""

from __future__ import annotations

from dataclasses import dataclass

from eval_tasks.compare.testing import Tested
from eval_tasks.records import PairedTest
from eval_tasks.stats.intervals import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Primary:
    """What a rule decides on: a benchmark's test, or the composite's.

    `q`: p as the rule adjusts it. `interval`: of A - B at the rule's level. `margin`: of equivalence.
    """

    test: PairedTest
    interval: Interval
    q: float
    equivalent: bool
    missing_could_undo: bool
    margin: float


def single_primary(t: Tested, *, q: float, alpha: float, confidence: float) -> Primary | None:
    """A benchmark under a rule of level `alpha`, its interval at `confidence`; None when it has no interval."""
    interval = t.interval(confidence)
    if interval is None:
        return None
    inside = t.interval(1 - 2 * alpha)
    equivalent = t.p_equivalence is not None and t.p_equivalence <= alpha
    missing = t.pairs is not None and t.pairs.n_missing > 0
    if missing:
        equivalent = equivalent and inside is not None and max(map(abs, inside)) < t.margin
    return Primary(
        test=t.test,
        interval=interval,
        q=q,
        equivalent=equivalent,
        missing_could_undo=missing and interval[0] <= 0 <= interval[1],
        margin=t.margin,
    )
