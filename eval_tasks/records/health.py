"""What one look at a training run found: the detections, the noise they were held against, and loss curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Detection = Literal["divergence", "forgetting", "chance_level", "collapse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthFinding:
    """One test of one subject at one look: the earlier look that stood out most.

    `observed` is held against `threshold` (both in `unit`); `p` against `alpha`, what this one test may spend.
    `subject` names a domain, or is empty for the whole benchmark. `detectable`: the smallest true value that such a
    look alarms on four times in five. `since_step`: where an alarm that still lasts began. `not_tested` says why there
    is no p.
    """

    detection: Detection
    benchmark: str
    metric: str
    subject: str = ""
    unit: str = "fraction"
    against_step: int | None = None
    observed: float | None = None
    threshold: float | None = None
    se: float | None = None
    p: float | None = None
    alpha: float | None = None
    detectable: float | None = None
    alarm: bool = False
    since_step: int | None = None
    not_tested: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What is watched, from look to look."""
        return self.detection, self.benchmark, self.metric, self.subject


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredNoise:
    """How far the checkpoints of a training run wobble around their trend, as a standard deviation of the score.

    `sd` is the part that all items share; None while there are too few looks. Measured over `n_looks` looks that end at
    `last_step`. Beside it `seed_sd`, the same part of what another training seed does, by the study `seed_study`: a
    prior, and another thing.
    """

    benchmark: str
    metric: str
    unit: str
    sd: float | None
    n_looks: int
    last_step: int | None
    seed_sd: float | None = None
    seed_study: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthLook:
    """One look: its number in the training run, what it may spend, what it found.

    `alpha_per_run`: the false-alarm rate of each detection over a whole training run. `scored_by` names the score sets
    it stands on: a look is taken once for each. `not_detected`: what no test here can see.
    """

    run_id: str
    training_run: str
    step: int
    look: int
    alpha_per_run: float
    horizon: int
    findings: tuple[HealthFinding, ...]
    noise: tuple[MeasuredNoise, ...] = ()
    not_detected: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    scored_by: str = ""

    @property
    def alarms(self) -> tuple[HealthFinding, ...]:
        """The findings that struck."""
        return tuple(finding for finding in self.findings if finding.alarm)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """One checkpoint of a loss curve."""

    step: int
    run_id: str
    score: float
    ci95: tuple[float, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LossCurve:
    """A held-out loss over the steps of a training run, in step order."""

    training_run: str
    benchmark: str
    metric: str
    unit: str
    points: tuple[CurvePoint, ...]
