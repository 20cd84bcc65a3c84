"""What a report is made of: records of one run, of one comparison, or of both, put together by the caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eval_tasks.errors import UserError
from eval_tasks.records import (
    BenchmarkVersion,
    Comparison,
    ContractReport,
    Environment,
    GuardReport,
    HealthLook,
    ItemReport,
    LossCurve,
    Measurement,
    PlannedResolution,
    Run,
    Selection,
)
from eval_tasks.records.diagnosis import Diagnosis


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportView:
    """Input of every rendering; the same view gives the same bytes.

    `run` is the run reported on: arm A where there is a `comparison`, whose arm B is `baseline`. `measurements` are the
    run's, in the order to be shown; `baseline_measurements` those of the baseline. `shard_seconds` maps a shard to the
    seconds its pod computed. `notes` are sentences for the reader (what a step left out, say).
    `diagnoses`: where the two runs disagree, by benchmark. `health`: the look at the run's training run, `curves` its
    held-out losses up to this step. `selection`: the choice among checkpoints that the run took part in.
    `contract`: the data contract that guard validated, clause by clause.
    `suspect`: why rows of the run or the baseline are in doubt, a sentence for each block.
    `item_report`: a benchmark's items over past runs, which stands alone.
    `resolution`: what a paired comparison of the run would find, by past comparisons.
    """

    run: Run | None = None
    measurements: tuple[Measurement, ...] = ()
    benchmarks: tuple[BenchmarkVersion, ...] = ()
    guard: GuardReport | None = None
    environment: Environment | None = None
    shard_seconds: Mapping[int, float] = field(default_factory=dict)
    comparison: Comparison | None = None
    baseline: Run | None = None
    baseline_measurements: tuple[Measurement, ...] = ()
    notes: tuple[str, ...] = ()
    diagnoses: tuple[Diagnosis, ...] = ()
    health: HealthLook | None = None
    curves: tuple[LossCurve, ...] = ()
    selection: Selection | None = None
    contract: ContractReport | None = None
    suspect: tuple[str, ...] = ()
    item_report: ItemReport | None = None
    resolution: tuple[PlannedResolution, ...] = ()

    def __post_init__(self) -> None:
        if self.run is None and self.comparison is None and self.item_report is None:
            raise UserError("a report needs a run, a comparison or an item report, and has none")

    def benchmark(self, benchmark_id: str) -> BenchmarkVersion | None:
        """The benchmark version of that id, when the caller gave it."""
        return next((b for b in self.benchmarks if b.benchmark_id == benchmark_id), None)
