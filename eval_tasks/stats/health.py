"""One look at a training run against an earlier one -> p of each thing that may have gone wrong. Fractions and bits.

Each test asks whether something is worse by more than a stated amount, so that a small true change is no alarm however
many the items. The error is that of the item pairs and, once it is measured, of the checkpoints' own wobble. Where
several things must hold at once, the largest p counts (intersection-union: Berger 1982), which needs no adjustment.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from scipy import special

from eval_tasks.stats.checkpoint_noise import CheckpointNoise
from eval_tasks.stats.influence import FloatArray, IntArray, is_zero
from eval_tasks.stats.intervals import wilson
from eval_tasks.stats.paired import PairedEstimate, paired_continuous
from eval_tasks.stats.power import mde_from_se

LOSS_RISE = 0.02
"""A loss that lies by more than this share above an earlier one has diverged; in one domain alone, it is forgotten."""

LEAD_LOST = 0.5
"""An accuracy that lost more than this share of its lead over chance, and shows no lead any more, is at chance."""

MODAL_SHARE = 0.9
"""Outputs of which more than this share are one and the same answer have collapsed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """How far `estimate` lies beyond `threshold`: p one-sided, from `se` on `df` degrees, checkpoint noise included."""

    estimate: float
    threshold: float
    se: float
    df: float
    p: float

    def detectable(self, alpha: float) -> float:
        """The smallest true value that is called at `alpha`, one-sided, four times in five."""
        return self.threshold + mde_from_se(self.se, self.df, 2 * alpha)


def excess(
    estimate: float, se: float, df: float, threshold: float, noise: CheckpointNoise | None = None, n_arms: float = 2.0
) -> Excess:
    """p of a true value of at most `threshold`. `n_arms`: how many times the noise of one checkpoint is in it.

    Satterthwaite's degrees of freedom, as for seeds: the item pairs' own, and those of the noise's whole variance.
    """
    common = 0.0 if noise is None else n_arms * noise.common
    variance = se**2 + common
    if noise is not None and common > 0:
        uncertain = se**4 / max(df, 1.0) + (n_arms * noise.total) ** 2 / noise.df
        df = variance**2 / uncertain
    total = math.sqrt(variance)
    if is_zero(total, max(abs(estimate), abs(threshold), 1e-15)):
        p = 1.0 if estimate <= threshold else float(0.5 ** (df + 1))
    else:
        p = float(special.stdtr(df, -(estimate - threshold) / total))
    return Excess(estimate=estimate, threshold=threshold, se=total, df=df, p=p)


def loss_rise(pair: PairedEstimate, noise: CheckpointNoise | None, share: float = LOSS_RISE) -> Excess | None:
    """A loss now (arm A) against earlier (arm B): has it risen by more than `share` of what it was? None: one item."""
    if pair.se is None:
        return None
    return excess(pair.delta, pair.se, pair.df, share * abs(pair.score_b), noise)


def domain_rise(domain: PairedEstimate, rest: PairedEstimate, share: float = LOSS_RISE) -> Excess | None:
    """The same of one domain, which must also exceed the rise of all others: the weaker of the two counts.

    Where the others have risen by more than their share too (at 5 %), nothing is forgotten: all of it has diverged.
    Checkpoint noise moves all domains together and is not in the contrast; in the domain's own rise the threshold
    stands for it, since a domain's wobble is not measured apart.
    """
    if domain.se is None or rest.se is None:
        return None
    threshold = share * abs(domain.score_b)
    others = excess(rest.delta, rest.se, rest.df, share * abs(rest.score_b))
    alone = excess(domain.delta, domain.se, domain.df, threshold)
    se = math.hypot(domain.se, rest.se)
    df = se**4 / (domain.se**4 / max(domain.df, 1) + rest.se**4 / max(rest.df, 1)) if se > 0 else domain.df
    beside = excess(domain.delta - rest.delta, se, df, threshold)
    weaker = max(alone, beside, key=lambda found: found.p)
    return replace(weaker, p=1.0) if others.p <= 0.05 else weaker


def lost_lead(
    now: FloatArray,
    earlier: FloatArray,
    chance: float,
    clusters: IntArray | None = None,
    noise: CheckpointNoise | None = None,
    share: float = LEAD_LOST,
) -> Excess | None:
    """Right-or-wrong items now and earlier: is a lead over chance lost? The estimate is in points of accuracy.

    Three things at once: it was above chance earlier (exact binomial), it lost more than `share` of that lead, and
    its 95 % interval now does not lie above chance. None when there are fewer than two items, or was no lead.
    """
    n, right_earlier, right_now = len(now), int(earlier.sum()), int(now.sum())
    lead = right_earlier / n - chance if n else 0.0
    if n < 2 or lead <= 0:
        return None
    lost = paired_continuous((1 - share) * (earlier - chance), now - chance, clusters)
    if lost.se is None:
        return None
    # delta = (1 - share) * lead earlier - lead now: above 0 when less than that part of the lead is left.
    found = excess(lost.delta, lost.se, lost.df, 0.0, noise, n_arms=1 + (1 - share) ** 2)
    was_above = float(special.bdtrc(right_earlier - 1, n, chance))
    interval = wilson(right_now, n)
    still_above = interval is not None and interval[0] > chance
    p = 1.0 if still_above else max(found.p, was_above)
    return replace(found, p=p)


def collapse_p(n_modal: int, n: int, share: float = MODAL_SHARE) -> float:
    """p of one answer having a true share of at most `share`, when it was given `n_modal` times of n (exact)."""
    return 1.0 if n_modal == 0 else float(special.bdtrc(n_modal - 1, n, share))
