"""The scores of a training run's checkpoints, step by step -> how far a checkpoint wobbles around its own trend.

The trend is whatever is locally straight over the logarithm of the step: each score is held against the line between
its neighbours. What the items themselves contribute is taken off, since a paired error holds it already.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eval_tasks.stats.influence import FloatArray

MIN_LOOKS = 8
WINDOW = 64
"""The last so many looks tell the noise of now: it falls with the learning rate."""

# Neighbouring second differences of independent noise correlate by -4/6 and 1/6, so that m of them hold the degrees of
# freedom of m / (1 + 2 (16/36 + 1/36)).
_OVERLAP = 1 + 2 * (16 + 1) / 36


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointNoise:
    """Variance of one checkpoint's score around the trend: `total` on `df` degrees, of which `items` is item noise."""

    total: float
    items: float
    df: float
    n_looks: int

    @property
    def common(self) -> float:
        """What all items share: the part that a paired error does not hold."""
        return max(0.0, self.total - self.items)


def checkpoint_noise(steps: FloatArray, scores: FloatArray, *, items: float = 0.0) -> CheckpointNoise | None:
    """The noise of checkpoints at `steps` (ascending); None for fewer than `MIN_LOOKS`.

    items: variance of a score that comes of items moving by themselves: half the squared error of a pair of neighbours.
    A single jump of size s adds about s^2 / m to the variance for as long as it is among the m looks.
    """
    if len(scores) < MIN_LOOKS:
        return None
    at = np.log1p(np.asarray(steps, dtype=np.float64))
    left, middle, right = at[:-2], at[1:-1], at[2:]
    weight = (middle - left) / (right - left)
    residuals = scores[1:-1] - (1 - weight) * scores[:-2] - weight * scores[2:]
    standard = residuals / np.sqrt(1 + (1 - weight) ** 2 + weight**2)
    m = len(standard)
    return CheckpointNoise(total=float(standard @ standard / m), items=items, df=m / _OVERLAP, n_looks=len(scores))
