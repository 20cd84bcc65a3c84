"""Right and wrong answers of many runs, and their abilities -> which items tell good runs from bad ones. Per item.

What is not independent is counted once: the checkpoints of one training run are one observation, the mean of theirs.
The link between an item and the ability on all other items is a correlation with the ranks of the abilities, so that
two runs far below the rest cannot make it; its p is one-sided, against a link that is not negative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from eval_tasks.stats.influence import FloatArray, IntArray
from eval_tasks.stats.intervals import wilson
from eval_tasks.stats.item_response import BoolArray, Calibration2PL
from eval_tasks.stats.multiplicity import benjamini_hochberg

MIN_GROUPS = 10
"""Fewer training runs than this cannot say that an item is linked to ability the wrong way."""

EXTREME = 0.1
"""Too easy: fewer than this share of training runs shown to be wrong. Too hard: as few shown to know it."""

_CHUNK = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemAnalysis:
    """By item, shape (items,); NaN where there is nothing to say, as for the link of an item that all have right.

    `n_groups`: training runs that saw it. `share`: mean over them of the share of their runs that have it right, with
    the ends of its Wilson interval. `link`: rank correlation with ability, with its 95 % interval, `q` its one-sided p
    adjusted over the items. `chance_q`: likewise of a share that is no lower than chance.
    """

    n_groups: IntArray
    share: FloatArray
    share_low: FloatArray
    share_high: FloatArray
    link: FloatArray
    link_low: FloatArray
    link_high: FloatArray
    q: FloatArray
    chance_q: FloatArray


def analyse_items(
    right: FloatArray,
    seen: BoolArray,
    groups: IntArray,
    fit: Calibration2PL,
    calibrated: npt.NDArray[np.intp],
    chance: float | None = None,
) -> ItemAnalysis:
    """right: 0 or 1, `seen`, both of shape (runs, items); groups: the training run of each run, from 0 up.

    calibrated: indices of the items that `fit` has, in its order; only these have a link.
    """
    n_items, n_groups = right.shape[1], int(groups.max()) + 1
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(n_groups))
    counts = np.add.reduceat(seen[order].astype(np.float64), starts, axis=0)
    sums = np.add.reduceat(right[order], starts, axis=0)
    there = counts > 0
    means = np.divide(sums, counts, out=np.zeros_like(sums), where=there)
    n = there.sum(axis=0)
    total = means.sum(axis=0)
    ends = [wilson(float(k), int(m)) or (np.nan, np.nan) for k, m in zip(total, n, strict=True)]
    link, p = np.full(n_items, np.nan), np.full(n_items, np.nan)
    for first in range(0, len(calibrated), _CHUNK):
        chunk = slice(first, first + _CHUNK)
        items = calibrated[chunk]
        rest = _rest_ability(right[:, items], seen[:, items], fit, chunk)[order]
        ability = np.divide(
            np.add.reduceat(np.where(seen[order][:, items], rest, 0.0), starts, axis=0),
            counts[:, items],
            out=np.zeros((n_groups, len(items))),
            where=there[:, items],
        )
        link[items] = _rank_correlation(means[:, items], ability, there[:, items])
    few = n < MIN_GROUPS
    tested = ~np.isnan(link) & ~few
    bounded = np.clip(link[tested], -1 + 1e-12, 1 - 1e-12)
    df = n[tested] - 2
    p[tested] = special.stdtr(df, bounded * np.sqrt(df / (1 - bounded**2)))
    half = np.full(n_items, np.nan)
    half[n > 3] = special.ndtri(0.975) / np.sqrt(n[n > 3] - 3)
    turned = np.arctanh(np.clip(link, -1 + 1e-12, 1 - 1e-12))
    below = np.full(n_items, np.nan)
    if chance:
        # A part of a training run's checkpoints counts as a whole one that has it right, so that p is not too small.
        below[~few] = special.bdtr(np.ceil(total[~few] - 1e-9), n[~few], chance)
    return ItemAnalysis(
        n_groups=n.astype(np.int64),
        share=np.divide(total, n, out=np.full(n_items, np.nan), where=n > 0),
        share_low=np.array([low for low, _ in ends]),
        share_high=np.array([high for _, high in ends]),
        link=link,
        link_low=np.tanh(turned - half),
        link_high=np.tanh(turned + half),
        q=benjamini_hochberg(p),
        chance_q=benjamini_hochberg(below),
    )


def _rest_ability(right: FloatArray, seen: BoolArray, fit: Calibration2PL, chunk: slice) -> FloatArray:
    """Each run's ability without the item in question, shape (runs, items): one step back along its own score."""
    a, c = fit.discrimination[chunk], fit.intercept[chunk]
    p = special.expit(fit.ability[:, None] * a + c)
    own = np.where(seen, a * (right - p), 0.0)
    return np.asarray(fit.ability[:, None] - own * (fit.ability_sd**2)[:, None])


def _rank_correlation(share: FloatArray, ability: FloatArray, there: BoolArray) -> FloatArray:
    """Of shares with the ranks of abilities, over the groups that saw the item; NaN where the shares do not differ."""
    hidden = np.where(there, ability, np.inf)
    order = np.argsort(hidden, axis=0, kind="stable")
    ranks = np.empty_like(ability)
    np.put_along_axis(ranks, order, np.arange(len(ability), dtype=np.float64)[:, None], axis=0)
    n = there.sum(axis=0)
    x = np.where(there, share - np.where(there, share, 0.0).sum(axis=0) / np.maximum(n, 1), 0.0)
    y = np.where(there, ranks - (n - 1) / 2, 0.0)
    size = np.sqrt((x * x).sum(axis=0) * (y * y).sum(axis=0))
    sound = size > 1e-9
    result: FloatArray = np.divide((x * y).sum(axis=0), size, out=np.full(len(n), np.nan), where=sound)
    return result
