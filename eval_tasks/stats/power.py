"""What a paired comparison could have found: minimum detectable effect and items needed, at 80 % power.

From the observed share of discordant items (psi), never from an assumed correlation. Source: Connor 1987.
"""

from __future__ import annotations

import math

from scipy import special

from eval_tasks.stats.intervals import t_quantile

FEW_DISCORDANT = 10
POWER = 0.8


def _z(alpha: float, power: float) -> tuple[float, float]:
    return -float(special.ndtri(alpha / 2)), float(special.ndtri(power))


def discordance(n_discordant: int, n: int) -> float:
    """psi for planning: the observed share, or below 10 discordant items its upper 95 % bound (Clopper-Pearson).

    0 of 500 is not a psi of 0: its upper bound is .6 %.
    """
    if n_discordant >= FEW_DISCORDANT:
        return n_discordant / n
    if n_discordant == n:
        return 1.0
    return float(special.betaincinv(n_discordant + 1, n - n_discordant, 0.95))


def paired_mde(n: int, psi: float, alpha: float = 0.05, power: float = POWER) -> float:
    """Smallest true difference McNemar's test would find on n items: z_a sqrt(psi) + z_b sqrt(psi - d^2) = d sqrt(n).

    No difference can exceed psi: where the solution would, psi grows with it, and 1 is the most there is.
    """
    z_alpha, z_power = _z(alpha, power)
    inner = n - z_alpha**2 + z_power**2
    if inner <= 0:
        return 1.0
    root = (z_alpha * math.sqrt(n) + z_power * math.sqrt(inner)) / (n + z_power**2)
    delta = math.sqrt(psi) * root
    return min(1.0, delta if delta <= psi else root**2)


def paired_items_needed(delta: float, psi: float, alpha: float = 0.05, power: float = POWER) -> float:
    """Items on which McNemar's test finds a true difference `delta` (a fraction, not 0); psi is at least |delta|."""
    z_alpha, z_power = _z(alpha, power)
    delta = abs(delta)
    psi = max(psi, delta)
    return ((z_alpha * math.sqrt(psi) + z_power * math.sqrt(psi - delta**2)) / delta) ** 2


def non_inferiority_items_needed(margin: float, psi: float, alpha: float = 0.05, power: float = POWER) -> float:
    """Pairs that show arm A to be less than `margin` worse, one-sided at alpha, when the arms are equally good.

    ``psi ((z_alpha + z_power) / margin)^2``: the variance of a paired difference of 0 is psi / n. psi counts as at
    least the margin: arms that are worse by the margin differ on that many items. A normal approximation: with
    Newcombe's interval the power is .7 to .8 (simulated at 124 to 2,377 pairs).
    """
    z_alpha, z_power = -float(special.ndtri(alpha)), float(special.ndtri(power))
    return max(psi, margin) * ((z_alpha + z_power) / margin) ** 2


def unpaired_mde(n: int, p: float, alpha: float = 0.05, power: float = POWER) -> float:
    """The same for two independent sets of n items at accuracy p: what pairing saves from."""
    return sum(_z(alpha, power)) * math.sqrt(2 * p * (1 - p) / n)


def unpaired_items_needed(delta: float, p: float, alpha: float = 0.05, power: float = POWER) -> float:
    """Items per arm for a true difference `delta` between independent sets at accuracy p."""
    return sum(_z(alpha, power)) ** 2 * 2 * p * (1 - p) / delta**2


def mde_from_se(se: float, df: float = math.inf, alpha: float = 0.05, power: float = POWER) -> float:
    """Smallest true difference found with a standard error `se` on `df` degrees: (t_{1 - alpha/2} + z_power) * se."""
    return (t_quantile(1 - alpha / 2, df) + float(special.ndtri(power))) * se
