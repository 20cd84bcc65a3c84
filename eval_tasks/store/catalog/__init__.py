"""The catalog: records by value in, records by value out, over SQLite or PostgreSQL. Knows no Parquet and no file."""

from __future__ import annotations

from eval_tasks.store.catalog.agreement import AgreementSets
from eval_tasks.store.catalog.alerts import Alerts
from eval_tasks.store.catalog.benchmarks import Benchmarks
from eval_tasks.store.catalog.blocks import Blocks
from eval_tasks.store.catalog.calibrations import Calibrations
from eval_tasks.store.catalog.checkpoints import Checkpoints
from eval_tasks.store.catalog.corpora import ContaminationCheck, Corpora, Corpus
from eval_tasks.store.catalog.costs import Costs
from eval_tasks.store.catalog.deliveries import Deliveries, Delivery
from eval_tasks.store.catalog.environments import Environments
from eval_tasks.store.catalog.graders import Grader, Graders
from eval_tasks.store.catalog.health import Health, SeriesPoint
from eval_tasks.store.catalog.landings import LandingRow, Landings
from eval_tasks.store.catalog.measurements import Measurements, ReportRow
from eval_tasks.store.catalog.nights import Nights
from eval_tasks.store.catalog.runs import Runs
from eval_tasks.store.catalog.shards import ShardRow, Shards
from eval_tasks.store.catalog.variances import Variances

__all__ = [
    "Catalog",
    "ContaminationCheck",
    "Corpus",
    "Delivery",
    "Grader",
    "LandingRow",
    "ReportRow",
    "SeriesPoint",
    "ShardRow",
]


class Catalog(
    Checkpoints,
    Landings,
    Benchmarks,
    Runs,
    Shards,
    Measurements,
    Variances,
    Calibrations,
    Health,
    Environments,
    Blocks,
    Nights,
    Corpora,
    Graders,
    AgreementSets,
    Alerts,
    Deliveries,
    Costs,
):
    """Every noun of the catalog behind one door."""
