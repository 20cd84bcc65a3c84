"""How far an instrument moves under choices that should not matter. No part of the engine's variance, which is zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from eval_tasks.digests import digest_value, short_id
from eval_tasks.records.codec import to_json

Varied = Literal["choice_order", "few_shot_draw", "dtype", "template"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitivityShift:
    """One benchmark's primary metric under one variant, less the instrument's own score, paired by item.

    `n_flipped`: items whose value changed. `se`: of the paired difference. `variant`: which one, such as ``seed 2``.
    """

    benchmark: str
    metric: str
    varied: Varied
    variant: str
    n: int
    score: float
    delta: float
    se: float | None
    n_flipped: int
    unit: str = "fraction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """One checkpoint on one suite, as it is and under variants. `not_varied`: what could not be varied, and why."""

    checkpoint_id: str
    checkpoint_uri: str
    suite: str
    suite_id: str
    engine_digest: str
    env_fingerprint: str
    harness_version: str
    seed: int
    n_items: int
    recorded_at: str
    shifts: tuple[SensitivityShift, ...]
    not_varied: tuple[str, ...] = ()

    @property
    def study_id(self) -> str:
        """Digest of what was found; the same study again is the same."""
        return short_id(digest_value({**to_json(self), "recorded_at": ""}))
