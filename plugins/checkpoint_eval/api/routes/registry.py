"""What is registered: benchmarks, suites, decision rules, graders, corpora and what was found of benchmarks in them."""

from __future__ import annotations

from collections import Counter
from http import HTTPStatus

from fastapi import APIRouter
from pydantic import BaseModel, Field

from checkpoint_eval.api.access import READ
from checkpoint_eval.api.archive import Archive
from checkpoint_eval.api.problems import documented
from eval_tasks.records import BenchmarkVersion, DecisionRule, Suite
from eval_tasks.store import Corpus, Grader

router = APIRouter(tags=["registry"], dependencies=READ)


class Contamination(BaseModel):
    """What a check of one benchmark version against one corpus found, in items."""

    benchmark: str
    version: str
    benchmark_id: str
    corpus: str
    rule: str
    checked_at: str
    counts: dict[str, int] = Field(description="Items that are clean, contaminated, not_checkable.")


@router.get("/benchmarks", responses=documented())
def benchmarks(store: Archive) -> list[BenchmarkVersion]:
    """All registered benchmark versions."""
    return store.catalog.benchmarks()


@router.get("/benchmarks/{name}", responses=documented(HTTPStatus.NOT_FOUND))
def benchmark(store: Archive, name: str, version: str | None = None) -> BenchmarkVersion:
    """A benchmark, of a version or the one registered last."""
    return store.catalog.benchmark(name, version)


@router.get("/suites", responses=documented())
def suites(store: Archive) -> list[Suite]:
    """All registered suites."""
    return store.catalog.suites()


@router.get("/rules", responses=documented())
def rules(store: Archive) -> list[DecisionRule]:
    """All registered decision rules, with the time of their registration."""
    return store.catalog.rules()


@router.get("/graders", responses=documented())
def graders(store: Archive) -> list[Grader]:
    """Registered graders: people, judges and scorers."""
    return store.catalog.graders()


@router.get("/corpora", responses=documented())
def corpora(store: Archive) -> list[Corpus]:
    """Registered training corpora."""
    return store.catalog.corpora()


@router.get("/contamination", responses=documented(HTTPStatus.NOT_FOUND))
def contamination(
    store: Archive, benchmark: str, version: str | None = None, corpus: str | None = None
) -> list[Contamination]:
    """What was found of a benchmark in the corpora that it was checked against; an empty list: never checked."""
    found = store.catalog.benchmark(benchmark, version)
    corpora = [store.catalog.corpus(corpus).name] if corpus else None
    return [
        Contamination(
            benchmark=found.name,
            version=found.version,
            benchmark_id=found.benchmark_id,
            corpus=check.corpus,
            rule=check.rule,
            checked_at=check.checked_at,
            counts=dict(sorted(Counter(check.rows.values()).items())),
        )
        for check in store.catalog.contamination(found.benchmark_id, corpora)
    ]
