"""Training runs: checkpoints that were seen, and the looks at their health. No progress curve: losses alone are one."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter
from pydantic import BaseModel

from checkpoint_eval.api.access import READ
from checkpoint_eval.api.archive import Archive
from checkpoint_eval.api.problems import documented
from eval_tasks.errors import UnknownError, did_you_mean
from eval_tasks.loss_curves import loss_curve
from eval_tasks.records.health import HealthLook, LossCurve
from eval_tasks.settings import Settings, load_config
from eval_tasks.store import Store

router = APIRouter(tags=["training runs"], dependencies=READ)


class SeenCheckpoint(BaseModel):
    """A checkpoint version in the landing ledger."""

    landing_id: str
    step: int
    uri: str
    state: str
    reason: str
    dag_runs: list[str]


class TrainingHealth(BaseModel):
    """Looks at a training run, in step order, its held-out losses over steps, and the checkpoints that were seen."""

    training_run: str
    looks: list[HealthLook]
    curves: list[LossCurve]
    checkpoints: list[SeenCheckpoint]


@router.get("/training-runs", responses=documented())
def training_runs(store: Archive) -> list[str]:
    """Names of the training runs that are configured, or that have landed a checkpoint."""
    return sorted(_names(store))


@router.get("/training-runs/{name}/health", responses=documented(HTTPStatus.NOT_FOUND))
def health(store: Archive, name: str) -> TrainingHealth:
    """What is known of a training run's health."""
    landings = store.catalog.landings(training_run=name)
    looks = store.catalog.health_looks(name)
    if not landings and not looks and name not in (known := _names(store)):
        raise UnknownError(f"no training run {name!r}; {did_you_mean(name, known)}")
    losses = [b for b in store.catalog.benchmarks() if b.kind == "loss"]
    latest = {benchmark.name: benchmark for benchmark in losses}
    curves = [loss_curve(store, name, benchmark, tier="health") for benchmark in latest.values()]
    return TrainingHealth(
        training_run=name,
        looks=looks,
        curves=[curve for curve in curves if curve.points],
        checkpoints=[
            SeenCheckpoint(
                landing_id=row.landing.landing_id,
                step=row.landing.step,
                uri=row.landing.uri,
                state=row.state,
                reason=row.reason,
                dag_runs=list(row.dag_runs),
            )
            for row in landings
        ],
    )


def _names(store: Store) -> set[str]:
    configured = {run.name for run in load_config(Settings().config).training_runs}
    return configured | {row.landing.training_run for row in store.catalog.landings()}
