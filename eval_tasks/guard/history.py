"""A number and the training run's earlier ones -> is it plausible beside them? Knows no rows.

`history_range`: further from the median of the last looks than the benchmark calls plausible. `at_chance`: a score that
was clearly above chance and now is not is a broken prompt or parser until somebody has looked; a smaller loss is a
regression, and stays a number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from eval_tasks.guard.contract import Breach
from eval_tasks.loss_curves import one_per_step
from eval_tasks.records import NO_TRAINING_RUN, BenchmarkVersion, Measurement, Run

if TYPE_CHECKING:
    from eval_tasks.store import Store

CHECKS = ("history_range", "at_chance")
LOOKS = 8
# Standard errors. A drop of 4 by chance: 1 in 30,000 looks, so that a training run of 1,440 looks hardly sees one.
_ABOVE, _DROP = 3.0, 4.0


def earlier_numbers(store: Store, run: Run, benchmark: BenchmarkVersion, metric: str, grader: str) -> list[Measurement]:
    """The metric at the last `LOOKS` lower steps of the training run, in step order; quarantined ones are left out.

    Those of the same tier and suite, by the same grader: another choice of items or another scorer is another number.
    """
    if run.training_run in ("", NO_TRAINING_RUN):
        return []
    series = store.catalog.series(
        run.training_run, benchmark.name, metric, tier=run.tier, suite=run.request.suite, before_step=run.step
    )
    usable = [
        point
        for point in series
        if point.measurement.benchmark_id == benchmark.benchmark_id
        and point.measurement.grader == grader
        and point.measurement.score is not None
        and not point.measurement.quarantined
    ]
    return [point.measurement for point in one_per_step(usable)[-LOOKS:]]


def check_history(m: Measurement, benchmark: BenchmarkVersion, earlier: Sequence[Measurement]) -> list[Breach]:
    """What is implausible about `m` beside the `earlier` numbers; nothing where there are none."""
    scores = [e.score for e in earlier if e.score is not None]
    if m.score is None or not scores:
        return []
    usual = median(scores)
    breaches = []
    allowed = benchmark.plausible_change.get(m.metric)
    if allowed is not None and abs(m.score - usual) > allowed:
        breaches.append(
            Breach(
                check="history_range",
                observed=f"{m.score:.4f}, {m.score - usual:+.4f} from the median of the last {len(scores)} looks",
                expected=f"within {allowed:g} of {usual:.4f}",
            )
        )
    if m.primary and m.unit == "fraction" and benchmark.chance_level is not None:
        breaches += _at_chance(m, benchmark.chance_level, usual, _error(earlier))
    return breaches


def _at_chance(m: Measurement, chance: float, usual: float, usual_se: float) -> list[Breach]:
    """Above chance before by more than its error, at chance now, and the drop is more than noise."""
    if m.score is None or m.se is None or m.ci95 is None or usual - chance <= _ABOVE * usual_se:
        return []
    lost_most = m.score - chance < (usual - chance) / 2
    if m.ci95[0] > chance or not lost_most or usual - m.score <= _DROP * math.hypot(m.se, usual_se):
        return []
    return [
        Breach(
            check="at_chance",
            observed=f"{m.score:.4f}, and {usual:.4f} at the looks before",
            expected=f"above the chance level {chance:g}, as before",
        )
    ]


def _error(earlier: Sequence[Measurement]) -> float:
    """The standard error of an earlier number: the largest, which errs towards silence."""
    return max((e.se for e in earlier if e.se is not None), default=math.inf)
