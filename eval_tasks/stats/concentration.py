"""Marked items in groups -> do the marks concentrate in some groups more than chance has it?

The null: every item is as likely to be marked as any other, so the marks of a group are a draw without replacement.
Its distribution is drawn, not looked up, since most groups hold too few marks for chi-square's table.
"""

from __future__ import annotations

import numpy as np

from eval_tasks.stats.influence import IntArray

_CELLS_AT_ONCE = 2_000_000
_MOST_CELLS = 10_000_000
_FEWEST_DRAWS = 199


def concentration_p(marked: IntArray, sizes: IntArray, *, draws: int = 4_999, seed: int = 0) -> float | None:
    """p of Pearson's statistic over groups of `sizes` items, `marked` of each; the data count as one draw.

    With more than 2,000 groups there are fewer draws, at least 199, so that thousands of clusters stay affordable.
    None when there is nothing to test: no mark, every item marked, or fewer than two groups. Shapes: (groups,).
    """
    occupied = sizes > 0
    marked, sizes = marked[occupied].astype(np.int64), sizes[occupied].astype(np.int64)
    n_marked, n = int(marked.sum()), int(sizes.sum())
    if len(sizes) < 2 or n_marked in (0, n):
        return None
    expected = n_marked * sizes / n
    # With few marks statistics tie often; a tie that rounding breaks would be counted as smaller.
    limit = float(np.sum((marked - expected) ** 2 / expected)) * (1 - 1e-9)
    draws = min(draws, max(_FEWEST_DRAWS, _MOST_CELLS // len(sizes)))
    generator = np.random.default_rng(seed)
    rows = max(1, _CELLS_AT_ONCE // len(sizes))
    as_large = 0
    for start in range(0, draws, rows):
        drawn = generator.multivariate_hypergeometric(
            sizes, n_marked, size=min(rows, draws - start), method="marginals"
        )
        as_large += int(np.count_nonzero(np.sum((drawn - expected) ** 2 / expected, axis=1) >= limit))
    return (as_large + 1) / (draws + 1)
