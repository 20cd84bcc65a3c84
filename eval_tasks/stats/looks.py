"""The number of a look at a training run -> the error probability that this look may spend.

The looks of a training run read the same held-out documents again and again, so that a later look is no new evidence:
the products of e-values and the confidence sequences that grow with independent data do not hold here (only averages of
e-values would, Vovk and Wang 2021). Alpha spending with a union bound (Lan and DeMets 1983, Bonferroni) holds whatever
the dependence, and late looks cost little: 1,440 of them ask for 4 standard errors more or less, where one asks for 2.
"""

from __future__ import annotations

from eval_tasks.errors import UserError

HORIZON = 1_440
"""Looks of a training run of 30 days with a checkpoint every half hour."""

_WITHIN_HORIZON = 0.9


def spent_at(look: int, alpha: float, horizon: int = HORIZON) -> float:
    """What look number `look` (from 1) may spend of `alpha`: evenly 90 % of it over the horizon, then half of the rest.

    Each further horizon of looks has half of what was left, so that the sum stays below alpha however long the run.
    """
    if look < 1:
        raise UserError(f"look number {look}; looks count from 1")
    block = (look - 1) // horizon
    share = _WITHIN_HORIZON if block == 0 else (1 - _WITHIN_HORIZON) * 0.5**block
    return alpha * share / horizon


def lags(n_earlier: int) -> list[int]:
    """How many looks back a look is compared: 1, 2, 4 ... of `n_earlier`.

    A sudden rise shows against the look before, a slow one against those far back. Chosen by position alone: the best
    earlier look would have been chosen for its luck.
    """
    return [1 << k for k in range(n_earlier.bit_length())]
