"""The best of many checkpoints on each benchmark, what of it is luck, and what another half of the items says."""

from __future__ import annotations

from dataclasses import dataclass

from eval_tasks.digests import digest_value, short_id
from eval_tasks.records.health import MeasuredNoise


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One checkpoint of a selection. `shrunk`: the score to be expected on new items. `in_set`: may be the best."""

    run_id: str
    label: str
    step: int
    score: float
    shrunk: float
    in_set: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """Selected on one half of the items, measured on the other. `delta`: the selected one minus `against`, there."""

    n_select: int
    n_confirm: int
    selected: str
    score_select: float
    score: float | None
    ci95: tuple[float, float] | None
    against: str
    delta: float | None
    delta_ci95: tuple[float, float] | None
    p: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkSelection:
    """One benchmark, candidates best first. `optimism`: how much the best of as many equal ones seems too good.

    `noise_sd`: item noise of one score beside the others'; `spread_sd`: of the true scores, as far as it shows.
    `noise`: the checkpoints' own wobble, measured in their training run. `not_selected` says why there is no choice.
    """

    benchmark: str
    metric: str
    unit: str
    higher_is_better: bool
    n_items: int = 0
    candidates: tuple[Candidate, ...] = ()
    optimism: float | None = None
    noise_sd: float | None = None
    spread_sd: float | None = None
    confirmation: Confirmation | None = None
    noise: MeasuredNoise | None = None
    not_selected: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A selection among runs, in the order they were given. `run_id`: the run in whose report it is shown."""

    run_id: str
    runs: tuple[str, ...]
    alpha: float
    benchmarks: tuple[BenchmarkSelection, ...]
    notes: tuple[str, ...] = ()

    @property
    def selection_id(self) -> str:
        """The same runs at the same alpha are the same selection."""
        return short_id(digest_value([list(self.runs), self.alpha]))
