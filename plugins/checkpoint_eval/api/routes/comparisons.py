"""Comparisons: made, listed, read with their diagnoses."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from checkpoint_eval.api.access import EVALUATE, READ
from checkpoint_eval.api.archive import Archive
from checkpoint_eval.api.problems import documented
from eval_tasks.compare import compare, keep_diagnoses
from eval_tasks.records import Comparison, from_json
from eval_tasks.records.diagnosis import Diagnosis
from eval_tasks.report import sentences
from eval_tasks.store import Store

router = APIRouter(tags=["comparisons"])

_MOST_ARMS = 64


class Question(BaseModel):
    """Candidate `a` against baseline `b`: one run each, or three and more runs of a recipe."""

    model_config = ConfigDict(extra="forbid")

    a: list[str] = Field(min_length=1, max_length=_MOST_ARMS, description="Run ids, or their beginnings.")
    b: list[str] = Field(min_length=1, max_length=_MOST_ARMS)
    rule: str | None = Field(None, description="A registered rule; without one the comparison is exploratory.")
    alpha: float = Field(0.05, gt=0, lt=1)
    grader: str | None = None
    seed_study: str | None = None


class ComparisonDetail(BaseModel):
    """A comparison, its verdict as one sentence, and where the runs disagree. Numbers are fractions, delta = A - B."""

    comparison_id: str
    sentence: str
    comparison: Comparison
    diagnoses: list[Diagnosis]


class ComparisonSummary(BaseModel):
    """What a list shows of a comparison."""

    comparison_id: str
    run_a: str
    run_b: str
    rule: str | None
    verdict: str | None
    sentence: str


@router.post(
    "/compare",
    dependencies=EVALUATE,
    responses=documented(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
)
def compare_runs(store: Archive, question: Question) -> ComparisonDetail:
    """Compare, item by item, and keep the comparison. The same question gives the same comparison."""
    made = compare(
        store,
        question.a,
        question.b,
        rule=store.catalog.rule(question.rule) if question.rule else None,
        alpha=question.alpha,
        grader=question.grader,
        seed_study=question.seed_study,
    )
    return _detail(store, made if made.further_a else keep_diagnoses(store, made))


@router.get("/comparisons", dependencies=READ, responses=documented(HTTPStatus.NOT_FOUND))
def comparisons(
    store: Archive, run_id: str | None = None, limit: Annotated[int, Query(ge=1, le=200)] = 50
) -> list[ComparisonSummary]:
    """Comparisons, newest first; those that a run is an arm of, when one is named."""
    found = store.catalog.comparisons(store.catalog.run(run_id).run_id if run_id else None)
    return [
        ComparisonSummary(
            comparison_id=c.comparison_id,
            run_a=c.run_a,
            run_b=c.run_b,
            rule=c.rule.name if c.rule else None,
            verdict=c.verdict,
            sentence=sentences.verdict(c),
        )
        for c in found[:limit]
    ]


@router.get("/comparisons/{comparison_id}", dependencies=READ, responses=documented(HTTPStatus.NOT_FOUND))
def comparison(store: Archive, comparison_id: str) -> ComparisonDetail:
    """One comparison with its diagnoses."""
    return _detail(store, store.catalog.comparison(comparison_id))


def _detail(store: Store, found: Comparison) -> ComparisonDetail:
    kept = store.blobs.get_json(found.diagnoses_blob) if found.diagnoses_blob else []
    return ComparisonDetail(
        comparison_id=found.comparison_id,
        sentence=sentences.verdict(found),
        comparison=found,
        diagnoses=[from_json(Diagnosis, each) for each in kept],
    )
