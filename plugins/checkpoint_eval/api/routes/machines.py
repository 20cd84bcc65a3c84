"""Environments as configuration has them, what their pods reported, baselines and nights."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from checkpoint_eval.api.access import READ
from checkpoint_eval.api.archive import Archive
from checkpoint_eval.api.problems import documented
from eval_tasks.records import Environment
from eval_tasks.records.determinism import Baseline, Night
from eval_tasks.settings import EnvironmentSpec, Settings, load_config

router = APIRouter(tags=["machines"], dependencies=READ)


class ConfiguredEnvironment(BaseModel):
    """One environment: how its pods are made, and which fingerprints they have reported, the latest first."""

    spec: EnvironmentSpec
    fingerprints: list[str] = Field(description="env_fingerprint values.")


@router.get("/environments", responses=documented())
def environments(store: Archive) -> list[ConfiguredEnvironment]:
    """The configured environments."""
    config = load_config(Settings().config)
    return [
        ConfiguredEnvironment(spec=spec, fingerprints=store.catalog.fingerprints_of(spec.name))
        for spec in config.environments
    ]


@router.get("/environments/{fingerprint}", responses=documented(HTTPStatus.NOT_FOUND))
def environment(store: Archive, fingerprint: str) -> Environment:
    """Every component of an environment that a pod has reported."""
    return store.catalog.environment(fingerprint)


@router.get("/baselines", responses=documented())
def baselines(store: Archive, suite_id: str | None = None) -> list[Baseline]:
    """The runs whose rows stand for an environment, adopted, proposed and refused ones."""
    return store.catalog.baselines(suite_id)


@router.get("/nights", responses=documented())
def nights(
    store: Archive, environment: str | None = None, limit: Annotated[int, Query(ge=1, le=200)] = 50
) -> list[Night]:
    """What the determinism nights found, newest first."""
    return store.catalog.nights(environment=environment, limit=limit)
