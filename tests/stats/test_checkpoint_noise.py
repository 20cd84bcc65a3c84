"""The wobble of checkpoints around a falling loss is found, and the trend is not taken for it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from eval_tasks.stats.checkpoint_noise import MIN_LOOKS, checkpoint_noise

STEPS = np.arange(1, 65) * 1_000.0
TREND = 3 * STEPS**-0.1


def test_the_noise_is_found_with_the_stated_degrees_of_freedom() -> None:
    rng, repetitions, sd = np.random.default_rng(1), 3_000, 0.004
    found = [checkpoint_noise(STEPS, TREND + rng.normal(0, sd, 64)) for _ in range(repetitions)]
    totals = np.array([noise.total for noise in found if noise is not None])
    df = found[0].df
    # A scaled chi-square: mean sd^2, variance 2 sd^4 / df.
    assert totals.mean() == pytest.approx(sd**2, rel=3.5 * math.sqrt(2 / df / repetitions) + 0.005)
    assert 2 * totals.mean() ** 2 / totals.var() == pytest.approx(df, rel=0.12)


def test_irregular_steps_change_nothing() -> None:
    rng, sd = np.random.default_rng(2), 0.004
    steps = np.sort(rng.choice(np.arange(1_000, 64_000), 64, replace=False)).astype(float)
    found = [checkpoint_noise(steps, 3 * steps**-0.1 + rng.normal(0, sd, 64)) for _ in range(1_000)]
    assert np.mean([noise.total for noise in found if noise is not None]) == pytest.approx(sd**2, rel=0.06)


def test_a_straight_trend_is_no_noise_and_item_noise_is_taken_off() -> None:
    smooth = checkpoint_noise(STEPS, 5 - np.log1p(STEPS))
    assert smooth is not None and smooth.total < 1e-20
    rng = np.random.default_rng(3)
    noise = checkpoint_noise(STEPS, TREND + rng.normal(0, 0.004, 64), items=0.002**2)
    assert noise is not None
    assert noise.common == noise.total - 0.002**2
    most = checkpoint_noise(STEPS, TREND, items=1.0)
    assert most is not None and most.common == 0


def test_too_few_looks_measure_nothing() -> None:
    assert checkpoint_noise(STEPS[: MIN_LOOKS - 1], TREND[: MIN_LOOKS - 1]) is None
    assert checkpoint_noise(STEPS[:MIN_LOOKS], TREND[:MIN_LOOKS]) is not None
