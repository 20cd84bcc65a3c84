"""Item-response weights calibrated on past runs, what they say of each item, and abilities measured by them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from eval_tasks.digests import digest_value, short_id
from eval_tasks.records.codec import to_json

ItemFlag = Literal["negative_discrimination", "below_chance", "too_hard", "too_easy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationRun:
    """A run that a calibration was made on. `group`: its training run or seed study, whose runs are not independent."""

    run_id: str
    checkpoint_id: str
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Frozen weights of a benchmark's items: the two-parameter logistic model on `runs`, in the order of their ids.

    `items_blob`: the items, each a `CalibratedItem`. `n_calibrated` of `n_items` have weights. `n_flagged` by flag.
    `reliability`: the share of the spread of their scores that is no noise of items. `rounds`: of EM. The same
    benchmark's next calibration is a new `version`; weights are never changed.
    """

    benchmark: str
    benchmark_version: str
    benchmark_id: str
    metric: str
    grader: str
    runs: tuple[CalibrationRun, ...]
    n_items: int
    n_calibrated: int
    n_flagged: dict[str, int]
    reliability: float
    rounds: int
    items_blob: str
    notes: tuple[str, ...] = ()
    version: int = 1
    created_at: str = ""

    @property
    def calibration_id(self) -> str:
        """Digest of the content: version and time apart."""
        content = to_json(self)
        for name in ("version", "created_at"):
            content.pop(name)
        return short_id(digest_value(content))

    @property
    def reference(self) -> str:
        """``benchmark@version of the benchmark/version of the calibration``, as reports and commands write it."""
        return f"{self.benchmark}@{self.benchmark_version}/{self.version}"

    @property
    def groups(self) -> tuple[str, ...]:
        """The training runs and seed studies of its runs, each once."""
        return tuple(sorted({run.group for run in self.runs}))


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedItem:
    """One item over the runs of a calibration; fractions. None: nothing to say, as of an item that all have right.

    `discrimination` a and `intercept` c: P(right) = 1 / (1 + exp(-(a theta + c))); `difficulty` = -c / a. Their errors
    are as if each training run were one observation. `share`: right, over training runs. `link`: rank correlation
    with the ability on all other items, one-sided `q` of one that is not negative. `chance_q`: of a share that is no
    lower than chance. `common_wrong`: the wrong answer that most runs gave to a flagged item, `n_common_wrong` of them.
    """

    item_id: str
    n_runs: int
    n_groups: int
    share: float | None
    share_ci95: tuple[float, float] | None
    discrimination: float | None = None
    discrimination_se: float | None = None
    intercept: float | None = None
    intercept_se: float | None = None
    difficulty: float | None = None
    difficulty_se: float | None = None
    link: float | None = None
    link_ci95: tuple[float, float] | None = None
    q: float | None = None
    chance_q: float | None = None
    flags: tuple[ItemFlag, ...] = ()
    common_wrong: str | None = None
    n_common_wrong: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ability:
    """A run's ability on a benchmark: 0 is the mean of the calibration's runs, 1 their standard deviation.

    `n`: items that took part. `gain`: how many times the items the plain score would need for the same precision, if
    the model holds. `note`: what must be said, or why there is no number.
    """

    calibration: str
    calibration_id: str
    theta: float | None = None
    se: float | None = None
    ci95: tuple[float, float] | None = None
    n: int = 0
    gain: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbilityDifference:
    """Abilities of two runs on the items that both have scored; `delta` = A - B. No verdict looks at it."""

    benchmark: str
    metric: str
    calibration: str
    calibration_id: str
    theta_a: float | None = None
    theta_b: float | None = None
    delta: float | None = None
    se: float | None = None
    ci95: tuple[float, float] | None = None
    n: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemReport:
    """The items that a benchmark's owner should look at, the likeliest mislabelled first, with their texts.

    `n_listed`: how many there are, of which `items` are the first. `texts`: item_id -> (question, gold answer).
    """

    calibration: Calibration
    items: tuple[CalibratedItem, ...]
    n_listed: int
    texts: dict[str, tuple[str, str]]
