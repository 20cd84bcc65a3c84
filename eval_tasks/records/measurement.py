"""A score with its error bars. It never travels without n, se and ci95, and never without its clean companion."""

from __future__ import annotations

from dataclasses import dataclass

from eval_tasks.records.item_response import Ability


@dataclass(frozen=True, slots=True, kw_only=True)
class Companion:
    """The same score on the items that are known not to be in the training corpora."""

    score: float | None
    n: int
    se: float | None
    ci95: tuple[float, float] | None
    n_contaminated: int
    n_not_checkable: int
    difference: float | None
    difference_se: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WithinItem:
    """How far the samples of one item lie apart, over all items, and what that adds to the score's error.

    `n_samples` per item. `variance`: of one sample's value around its item's mean, averaged over items. `se`: the part
    of the score's standard error that comes of drawing samples, ``se^2 = sum_i (w_i / sum w)^2 s_i^2 / n_samples``; the
    rest comes of drawing items. Both None where they are not known: one sample per item, or pass@k.
    """

    n_samples: int
    variance: float | None = None
    se: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One metric of one benchmark in one run. Fractions (or bits), not points.

    `n_attempted` = n + n_missing + n_excluded; `n` counts scored items, the invalid ones included. `ci95` is widened to
    what missing items could be (`ci95_method` says so). `contamination` is a sentence: ``never checked``, or rate,
    time and rule. `companion` is None exactly when it was never checked. `within_item` is None for greedy outputs.
    `ability`: by item-response weights, where a calibration of the benchmark stood when it was aggregated.
    `caveat`: what must be said wherever the number stands, such as that a mock engine made it up; '' for nothing.
    """

    run_id: str
    benchmark_id: str
    benchmark: str
    version: str
    metric: str
    primary: bool
    score: float | None
    n: int
    n_attempted: int
    se: float | None
    ci95: tuple[float, float] | None
    ci95_method: str
    n_invalid: int = 0
    n_missing: int = 0
    n_excluded: int = 0
    n_prompt_truncated: int = 0
    n_output_truncated: int = 0
    grader: str = ""
    higher_is_better: bool = True
    unit: str = "fraction"
    contamination: str = "never checked"
    companion: Companion | None = None
    quarantined: bool = False
    quarantine_reason: str = ""
    within_item: WithinItem | None = None
    caveat: str = ""
    ability: Ability | None = None
