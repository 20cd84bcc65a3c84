"""The tests of a look, and by simulation what is stated of them: false alarms per 1,440 looks, and what they see.

A tolerance is 3.5 standard errors of a share at that number of repetitions: of 1,000 honest tests one fails.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import special

from eval_tasks.stats.checkpoint_noise import CheckpointNoise, checkpoint_noise
from eval_tasks.stats.health import collapse_p, domain_rise, excess, loss_rise, lost_lead
from eval_tasks.stats.looks import HORIZON, lags, spent_at
from eval_tasks.stats.paired import paired_continuous

ALPHA = 0.01


def tolerance(rate: float, repetitions: int) -> float:
    return 3.5 * math.sqrt(rate * (1 - rate) / repetitions)


def pair(now, earlier, clusters=None):
    return paired_continuous(np.asarray(now, float), np.asarray(earlier, float), clusters)


def test_a_rise_is_held_against_two_per_cent_of_what_the_loss_was() -> None:
    earlier = np.linspace(0.5, 1.5, 200)
    spread = np.tile([0.01, -0.01], 100)
    found = loss_rise(pair(earlier * 1.05 + spread, earlier), None)
    assert found is not None
    assert found.threshold == pytest.approx(0.02)
    assert found.estimate == pytest.approx(0.05)
    assert found.p < 1e-20
    small = loss_rise(pair(earlier * 1.01 + spread, earlier), None)
    assert small is not None and small.p > 0.999


def test_one_document_cannot_tell() -> None:
    assert loss_rise(pair([2.0], [1.0]), None) is None


def test_noise_of_checkpoints_widens_the_error_and_few_looks_cost_degrees_of_freedom() -> None:
    noise = CheckpointNoise(total=0.01**2, items=0.0, df=10.0, n_looks=21)
    plain, wide = excess(0.05, 0.003, 999, 0.02), excess(0.05, 0.003, 999, 0.02, noise)
    assert wide.se == pytest.approx(math.sqrt(0.003**2 + 2 * 0.01**2))
    assert 10 < wide.df < 15 and plain.df == 999
    assert wide.p > plain.p
    # All of it the items' own: nothing is added.
    assert excess(0.05, 0.003, 999, 0.02, CheckpointNoise(total=1e-4, items=1.0, df=10.0, n_looks=21)) == plain


def test_differences_without_spread_are_no_certainty() -> None:
    assert excess(0.05, 0.0, 9, 0.02).p == 0.5**10
    assert excess(0.02, 0.0, 9, 0.02).p == 1.0


def test_one_domain_must_rise_and_the_others_must_not() -> None:
    rng = np.random.default_rng(1)
    base = rng.uniform(0.5, 1.5, 400)
    noise = rng.normal(0, 0.01, 400)
    up, flat = pair(base * 1.1 + noise, base), pair(base + noise, base)
    forgotten, all_up, none = domain_rise(up, flat), domain_rise(up, up), domain_rise(flat, flat)
    assert forgotten is not None and forgotten.p < 1e-20
    assert all_up is not None and all_up.p > 0.9
    assert none is not None and none.p > 0.9
    fell = domain_rise(flat, pair(base * 0.9 + noise, base))
    assert fell is not None and fell.p > 0.9, "the others got better: nothing was forgotten"


def test_a_lost_lead_needs_a_lead_a_loss_and_chance() -> None:
    n = 2_000
    half, quarter, third = (np.arange(n) < n * share for share in (0.5, 0.25, 0.35))
    lost = lost_lead(quarter.astype(float), half.astype(float), 0.25)
    assert lost is not None and lost.p < 1e-10
    still = lost_lead(third.astype(float), half.astype(float), 0.25)
    assert still is not None and still.p == 1.0, "35 % of 2,000 still lies above chance"
    assert lost_lead(quarter.astype(float), quarter.astype(float), 0.25) is None, "there was no lead"


def test_a_lead_that_was_luck_is_not_called() -> None:
    """Every look at chance: the best earlier look seems to have had a lead, and lost it."""
    rng, alarms, runs = np.random.default_rng(2), 0, 40
    for _ in range(runs):
        correct = (rng.random((200, 500)) < 0.25).astype(float)
        for look in range(1, 200):
            each = spent_at(look + 1, ALPHA) / len(lags(look))
            found = [lost_lead(correct[look], correct[look - lag], 0.25) for lag in lags(look)]
            alarms += any(f is not None and f.p <= each for f in found)
    assert alarms == 0


def test_a_collapse_is_nine_in_ten_beyond_doubt() -> None:
    assert collapse_p(1_800, 2_000) == pytest.approx(0.5, abs=0.02)
    assert collapse_p(1_900, 2_000) < 1e-10
    assert collapse_p(0, 2_000) == 1.0


# --- the false-alarm rate of a whole training run -------------------------------------------------------------------


def independent_looks(rng, runs, rise):
    """`runs` training runs of 1,440 looks whose tests are all independent and stand at `rise`: nothing is worse.

    Each test has a paired t statistic of 400 documents. Gives whether each run raised an alarm.
    """
    n = 400
    z, s2 = rng.standard_normal((runs, HORIZON)), rng.chisquare(n - 1, (runs, HORIZON)) / (n - 1)
    se = 0.05 / math.sqrt(n)
    p = special.stdtr(n - 1, -(rise - 0.02 + se * z) / (se * np.sqrt(s2)))
    return (p <= spent_at(1, ALPHA)).any(axis=1)


def test_false_alarms_per_training_run_are_the_stated_ones_where_every_look_stands_at_the_threshold() -> None:
    """The worst case that the level allows for: it is used up, and not exceeded."""
    runs = 2_000
    rate = independent_looks(np.random.default_rng(3), runs, 0.02).mean()
    assert rate == pytest.approx(0.9 * ALPHA, abs=tolerance(0.9 * ALPHA, runs))


def test_at_the_usual_level_each_run_would_raise_dozens() -> None:
    rng = np.random.default_rng(4)
    z = rng.standard_normal((50, HORIZON))
    assert (z > 1.645).sum(axis=1).min() > 40


@dataclass(frozen=True)
class TrainingRun:
    """A made training run, by its scores: loss at each look, and what a look of it finds against 1, 2, 4 ... back."""

    rise_at: int
    rise: float
    wobble: float
    sd_pair: float
    n: int = 1_000
    creep: float = 0.0

    def losses(self, rng, looks):
        steps = np.arange(1, looks + 1) * 1_000.0
        loss = 3 * steps**-0.1
        loss = loss + rng.normal(0, self.wobble, looks) * loss
        loss[self.rise_at :] *= 1 + self.rise
        # From look 100 on the trend has turned.
        loss *= (1 + self.creep) ** np.maximum(0, np.arange(looks) - 100)
        return steps, loss

    def first_alarm(self, rng, looks):
        """The look that first raises an alarm, or None."""
        steps, loss = self.losses(rng, looks)
        items = self.sd_pair / math.sqrt(self.n)
        # Items move by themselves at each look, half of a pair's error at either side.
        seen = loss + rng.normal(0, items / math.sqrt(2), looks)
        for look in range(1, looks):
            back = [look - lag for lag in lags(look)]
            noise = None
            if look >= 8:
                window = slice(max(0, look - 64), look)
                noise = checkpoint_noise(steps[window], seen[window], items=items**2 / 2)
            each = spent_at(look + 1, ALPHA) / len(back)
            for earlier in back:
                found = excess(seen[look] - seen[earlier], items, self.n - 1, 0.02 * seen[earlier], noise)
                if found.p <= each:
                    return look
        return None


def test_a_sound_training_run_that_wobbles_raises_nothing() -> None:
    """Checkpoints wobble by .5 % of the loss, a quarter of the threshold; looks share neighbours and trend."""
    sound = TrainingRun(rise_at=10**6, rise=0.0, wobble=0.005, sd_pair=0.05)
    alarms = [sound.first_alarm(np.random.default_rng(100 + k), 360) for k in range(20)]
    assert alarms == [None] * 20


def test_a_run_that_only_wobbles_by_the_threshold_itself_raises_few() -> None:
    """Wobble as large as what is let pass: it is measured and allowed for, once there are looks to measure it."""
    wild = TrainingRun(rise_at=10**6, rise=0.0, wobble=0.01, sd_pair=0.05)
    alarms = [wild.first_alarm(np.random.default_rng(200 + k), 200) for k in range(40)]
    late = [a for a in alarms if a is not None and a >= 16]
    assert len(late) <= 1


# The table of docs/health.md: a step in the loss of a run with 1,000 documents, and how often it is seen at once.
POWER = [(0.03, 0.001, 0.10), (0.04, 0.001, 1.0), (0.04, 0.003, 0.09), (0.05, 0.003, 0.77), (0.07, 0.003, 1.0)]


@pytest.mark.parametrize(("rise", "wobble", "seen"), POWER)
def test_what_is_seen_at_once(rise, wobble, seen):
    run, repetitions = TrainingRun(rise_at=100, rise=rise, wobble=wobble, sd_pair=0.05), 60
    found = [run.first_alarm(np.random.default_rng(300 + k), 101) == 100 for k in range(repetitions)]
    assert np.mean(found) == pytest.approx(seen, abs=tolerance(min(max(seen, 0.02), 0.98), repetitions))


def test_a_loss_that_creeps_up_is_seen_against_looks_far_back():
    """A tenth of a per cent at each look, against a trend that still falls: no neighbour shows it, far ones do."""
    creeping = [TrainingRun(rise_at=10**6, rise=0.0, wobble=0.001, sd_pair=0.05, creep=0.001) for _ in range(10)]
    seen = [run.first_alarm(np.random.default_rng(400 + k), 300) for k, run in enumerate(creeping)]
    assert all(look is not None and 60 < look - 100 <= 135 for look in seen), seen
