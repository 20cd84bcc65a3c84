"""Right-or-wrong scores of two arms and names of their items' groups -> where the arms disagree. Knows no store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eval_tasks.records.diagnosis import GroupedFlips, GroupFlips
from eval_tasks.stats.concentration import concentration_p
from eval_tasks.stats.influence import FloatArray
from eval_tasks.stats.multiplicity import benjamini_hochberg
from eval_tasks.stats.paired import mcnemar_mid_p

MOST_GROUPS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """Aligned arms: `item_ids` in order, values of zeros and ones, and per kind of group a name (or None) per item."""

    item_ids: pa.Array
    a: FloatArray
    b: FloatArray
    names: Mapping[str, pa.Array]

    def indices(self, *, lost: bool) -> list[int]:
        """Items only B has right (`lost`), or only A."""
        wanted = (self.a < self.b) if lost else (self.a > self.b)
        return [int(k) for k in np.flatnonzero(wanted)]


def grouped(flips: Flips, by: str) -> GroupedFlips | None:
    """The flips of each group; items that name none take no part. None when fewer than two groups have a name."""
    encoded = flips.names[by].cast(pa.string()).dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    k = len(encoded.dictionary)
    if k < 2:
        return None
    named = codes >= 0

    def counted(mask: np.ndarray) -> np.ndarray:
        return np.bincount(codes[mask & named], minlength=k)

    sizes = np.bincount(codes[named], minlength=k)
    lost, gained = counted(flips.a < flips.b), counted(flips.a > flips.b)
    p = np.array([mcnemar_mid_p(int(x), int(y)) for x, y in zip(gained, lost, strict=True)])
    q = benjamini_hochberg(np.where(lost + gained > 0, p, np.nan))
    labels = encoded.dictionary.to_pylist()
    order = sorted(range(k), key=lambda g: (-(int(lost[g]) - int(gained[g])), -int(lost[g]), labels[g]))
    return GroupedFlips(
        by=by,
        n_groups=k,
        groups=tuple(
            GroupFlips(
                group=labels[g],
                n=int(sizes[g]),
                lost=int(lost[g]),
                gained=int(gained[g]),
                p=float(p[g]),
                q=1.0 if np.isnan(q[g]) else float(q[g]),
            )
            for g in order[:MOST_GROUPS]
        ),
        p_flips=concentration_p(lost + gained, sizes),
        p_direction=concentration_p(lost, lost + gained),
    )
