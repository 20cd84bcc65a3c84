"""False alarms per training run of 1,440 looks, by detection: whole runs, item by item, with the looks' dependence.

In each made run nothing is worse than what is let pass: either nothing happens, or in the middle something gets worse
by exactly the threshold, so that every later look stands at the null against those before it. Looks share documents,
and each is held against 1, 2, 4 ... looks back with the level shared out as `health` does. The looks are tested by
arrays, which a test holds to the functions of `eval_tasks.stats.health`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import special

from eval_tasks.stats.health import LEAD_LOST, LOSS_RISE, domain_rise, loss_rise, lost_lead
from eval_tasks.stats.looks import HORIZON, lags, spent_at
from eval_tasks.stats.paired import paired_continuous

ALPHA = 0.01
MIDDLE = HORIZON // 2
DOMAINS = 8
CHANCE = 0.25
SHARED = np.array([len(lags(look)) for look in range(HORIZON)], dtype=float)


@dataclass(frozen=True)
class Detection:
    """`made(rng, worse)`: scores of one run, shape (looks, items). `p(now, earlier)`: shape (looks, subjects)."""

    made: Callable[[np.random.Generator, bool], np.ndarray]
    p: Callable[[np.ndarray, np.ndarray], np.ndarray]
    subjects: int = 1

    def alarm(self, scores: np.ndarray) -> bool:
        """Whether any look of a run raises an alarm."""
        for lag in lags(HORIZON - 1):
            level = spent_at(1, ALPHA) / SHARED[lag:, None] / self.subjects
            if (self.p(scores[lag:], scores[:-lag]) <= level).any():
                return True
        return False


def t_p(estimate, se, df):
    return special.stdtr(df, -estimate / se)


def losses(rng, worse, domain_only=False):
    """Documents of lasting difficulty; between looks each moves by itself, pairs by a standard deviation of .05."""
    n = DOMAINS * 60
    level = np.ones((HORIZON, n))
    if worse:
        level[MIDDLE:, : 60 if domain_only else n] += LOSS_RISE
    return level * rng.gamma(8, 0.12, n) + rng.normal(0, 0.05 / math.sqrt(2), (HORIZON, n))


def divergence_p(now, earlier):
    d, n = now - earlier, now.shape[1]
    beyond = d.mean(axis=1) - LOSS_RISE * earlier.mean(axis=1)
    return t_p(beyond, d.std(axis=1, ddof=1) / math.sqrt(n), n - 1)[:, None]


def forgetting_p(now, earlier):
    d = (now - earlier).reshape(len(now), DOMAINS, -1)
    m = d.shape[2]
    rest = (DOMAINS - 1) * m
    sums, squares = d.sum(axis=2), (d * d).sum(axis=2)
    mean, se = sums / m, np.sqrt((squares - sums**2 / m) / (m - 1) / m)
    other = sums.sum(axis=1, keepdims=True) - sums
    other_squares = squares.sum(axis=1, keepdims=True) - squares
    rest_mean, rest_se = other / rest, np.sqrt((other_squares - other**2 / rest) / (rest - 1) / rest)
    was = earlier.reshape(len(now), DOMAINS, m).sum(axis=2)
    threshold = LOSS_RISE * was / m
    rest_threshold = LOSS_RISE * (was.sum(axis=1, keepdims=True) - was) / rest
    both = np.hypot(se, rest_se)
    df = both**4 / (se**4 / (m - 1) + rest_se**4 / (rest - 1))
    p = np.maximum(t_p(mean - threshold, se, m - 1), t_p(mean - rest_mean - threshold, both, df))
    return np.where(t_p(rest_mean - rest_threshold, rest_se, rest - 1) <= 0.05, 1.0, p)


def answers(rng, worse):
    """Right or wrong on 500 items: at chance all along, or with a lead of .11 of which half is lost."""
    lead = np.where(np.arange(HORIZON) < MIDDLE, 0.11, 0.055) if worse else np.zeros(HORIZON)
    return (rng.random((HORIZON, 500)) < CHANCE + lead[:, None]).astype(float)


def chance_p(now, earlier):
    n = now.shape[1]
    d = (1 - LEAD_LOST) * (earlier - CHANCE) - (now - CHANCE)
    right, was = now.sum(axis=1), earlier.sum(axis=1)
    z = special.ndtri(0.975)
    low = (right + z * z / 2 - z * np.sqrt(right * (n - right) / n + z * z / 4)) / (n + z * z)
    p = np.maximum(t_p(d.mean(axis=1), d.std(axis=1, ddof=1) / math.sqrt(n), n - 1), special.bdtrc(was - 1, n, CHANCE))
    return np.where((low > CHANCE) | (was <= CHANCE * n), 1.0, p)[:, None]


DETECTIONS = {
    "divergence": Detection(made=losses, p=divergence_p),
    "forgetting": Detection(made=lambda rng, worse: losses(rng, worse, True), p=forgetting_p, subjects=DOMAINS),
    "chance_level": Detection(made=answers, p=chance_p),
}


def test_the_arrays_are_the_tests_of_a_look():
    rng = np.random.default_rng(1)
    loss, right = losses(rng, True, True), answers(rng, True)
    first = np.arange(loss.shape[1]) < 60
    for now, earlier in ((MIDDLE, MIDDLE - 1), (MIDDLE + 5, MIDDLE - 3), (900, 388), (40, 8)):
        pair = paired_continuous(loss[now], loss[earlier])
        one = [slice(now, now + 1), slice(earlier, earlier + 1)]
        assert divergence_p(*(loss[s] for s in one))[0, 0] == pytest.approx(loss_rise(pair, None).p, rel=1e-9)
        domain = paired_continuous(loss[now][first], loss[earlier][first])
        rest = paired_continuous(loss[now][~first], loss[earlier][~first])
        assert forgetting_p(*(loss[s] for s in one))[0, 0] == pytest.approx(domain_rise(domain, rest).p, rel=1e-7)
        lost = lost_lead(right[now], right[earlier], CHANCE)
        assert chance_p(*(right[s] for s in one))[0, 0] == pytest.approx(lost.p if lost else 1.0, rel=1e-9)


def alarms(name: str, worse: bool, runs: int) -> int:
    detection = DETECTIONS[name]
    return sum(detection.alarm(detection.made(np.random.default_rng([7, k]), worse)) for k in range(runs))


@pytest.mark.parametrize("name", DETECTIONS)
def test_a_few_runs_raise_none(name):
    """At 1 % of the runs five of 25 would be one chance in twenty thousand; the many are in `make test-full`."""
    assert alarms(name, worse=True, runs=25) < 5


@pytest.mark.full
@pytest.mark.parametrize("worse", [False, True])
@pytest.mark.parametrize("name", DETECTIONS)
def test_at_most_one_training_run_in_a_hundred_raises_an_alarm(name, worse):
    """As the table of docs/health.md, of 500 runs each, in fewer. The tolerance is 3.5 standard errors of the rate."""
    runs = 150
    found = alarms(name, worse, runs)
    assert found / runs <= ALPHA + 3.5 * math.sqrt(ALPHA * (1 - ALPHA) / runs)


def test_a_run_that_gets_worse_by_more_does_raise_one():
    """The arrays can raise an alarm at all."""
    rng = np.random.default_rng(2)
    loss = losses(rng, False)
    loss[MIDDLE:, :60] *= 1.2
    assert DETECTIONS["forgetting"].alarm(loss)
    loss[MIDDLE:] *= 1.1
    assert DETECTIONS["divergence"].alarm(loss)
    right = answers(rng, True)
    right[MIDDLE:] = (rng.random((HORIZON - MIDDLE, 500)) < 0.2).astype(float)
    assert DETECTIONS["chance_level"].alarm(right)
