"""Is a difference within a margin, or not below it? Two one-sided tests, or one. Source: Schuirmann 1987.

p is the smallest alpha at which the (1 - 2 alpha) interval lies inside (-margin, margin), or above -margin.
"""

from __future__ import annotations

from collections.abc import Callable

from scipy import special

from eval_tasks.stats.influence import is_zero
from eval_tasks.stats.paired import PairedEstimate, Table, newcombe10

_SMALLEST, _LARGEST = 1e-12, 0.4999
_MOST_STEPS = 60
_CLOSE = 1e-11


def tost_p(delta: float, se: float, df: float, margin: float) -> float:
    """p of |true difference| >= margin from a t statistic; differences without spread give at best 2^-(df + 1)."""
    if abs(delta) >= margin:
        return 1.0
    if is_zero(se, margin):
        return min(1.0, float(0.5 ** (df + 1)))
    return float(max(special.stdtr(df, -(delta + margin) / se), special.stdtr(df, (delta - margin) / se)))


def tost_newcombe_p(table: Table, margin: float) -> float:
    """The same from Newcombe's interval, which has a width even when nothing is discordant."""
    if table.n == 0 or abs(table.b - table.c) / table.n >= margin:
        return 1.0

    def beyond(alpha: float) -> float:
        interval = newcombe10(table, 1 - 2 * alpha)
        return 1.0 if interval is None else max(interval[1] - margin, -margin - interval[0])

    return _smallest_alpha(beyond)


def non_inferiority_newcombe_p(table: Table, margin: float) -> float:
    """p that arm A is worse than arm B by `margin` or more: the least alpha at which the lower end is above -margin."""
    if table.n == 0 or (table.b - table.c) / table.n <= -margin:
        return 1.0

    def beyond(alpha: float) -> float:
        interval = newcombe10(table, 1 - 2 * alpha)
        return 1.0 if interval is None else -margin - interval[0]

    return _smallest_alpha(beyond)


def _smallest_alpha(beyond: Callable[[float], float]) -> float:
    """Where `beyond`, which falls as alpha grows, is 0; 1 when it stays above.

    Sought over the normal quantile of alpha, in which an interval's ends are almost straight: the false position
    (Illinois) takes a few steps, and less time than scipy.optimize takes to load.
    """
    wide, narrow = -float(special.ndtri(_SMALLEST)), -float(special.ndtri(_LARGEST))
    over, under = beyond(_SMALLEST), beyond(_LARGEST)
    if over <= 0:
        return _SMALLEST
    if under >= 0:
        return 1.0
    z, side = wide, 0
    for _ in range(_MOST_STEPS):
        before, z = z, (wide * under - narrow * over) / (under - over)
        value = beyond(float(special.ndtr(-z)))
        if value == 0 or abs(z - before) < _CLOSE:
            break
        if value > 0:
            wide, over, under, side = z, value, under / 2 if side > 0 else under, 1
        else:
            narrow, under, over, side = z, value, over / 2 if side < 0 else over, -1
    return float(special.ndtr(-z))


def equivalence_p(estimate: PairedEstimate, margin: float) -> float | None:
    """p that the arms differ by `margin` or more, by the interval the estimate has; None without a standard error."""
    if estimate.newcombe is not None:
        return tost_newcombe_p(estimate.newcombe, margin)
    if estimate.se is None:
        return None
    return tost_p(estimate.delta, estimate.se, estimate.df, margin)
