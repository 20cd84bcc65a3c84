"""Comparisons: a list, a form that asks for one, and one with its verdict, tests, figures and flipped items."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from fastapi import Form as FormField
from fastapi.responses import RedirectResponse, Response

from checkpoint_eval.api.access import EVALUATE, READ
from checkpoint_eval.api.archive import Archive
from checkpoint_eval.pages.page import API, Field, Form, Page, Section, Text, html, link, listing, outward, url
from checkpoint_eval.pages.viewer import Visitor
from eval_tasks.compare import compare, keep_diagnoses
from eval_tasks.records import Comparison, from_json
from eval_tasks.records.diagnosis import Diagnosis
from eval_tasks.report import figures, flips, recipes, sentences, tables
from eval_tasks.store import Store

router = APIRouter()

_LISTED = 100


@router.get("/comparisons", dependencies=READ)
def comparisons(store: Archive, viewer: Visitor, a: str = "", b: str = "") -> str:
    """Comparisons, newest first, and a form that asks for another."""
    rows = [
        (
            link(c.comparison_id[:12], f"comparisons/{c.comparison_id}"),
            link(c.run_a[:12], f"runs/{c.run_a}"),
            link(c.run_b[:12], f"runs/{c.run_b}"),
            c.rule.name if c.rule else "exploratory",
            sentences.verdict(c),
        )
        for c in store.catalog.comparisons()[:_LISTED]
    ]
    columns = {"Comparison": "code", "Candidate, A": "code", "Baseline, B": "code", "Rule": "", "Verdict": ""}
    rules = (("", "none: exploratory"), *((rule.name, rule.name) for rule in store.catalog.rules()))
    ask = Form(
        action="comparisons",
        name="ask",
        submit="Compare",
        right="evaluate",
        fields=(
            Field(name="a", label="Candidate, A", value=a, required=True, hint="A run id or its beginning."),
            Field(name="b", label="Baseline, B", value=b, required=True),
            Field(name="rule", label="Decision rule", options=rules),
        ),
    )
    sections = (
        listing("list", "Comparisons, newest first", columns, rows, empty="No comparison yet."),
        Section(title="Compare two runs", name="ask", forms=(ask,)),
    )
    return html(Page(title="Comparisons", here="comparisons", sections=sections), viewer)


@router.post("/comparisons", dependencies=EVALUATE)
def ask(
    store: Archive,
    a: Annotated[str, FormField(min_length=1, max_length=64)],
    b: Annotated[str, FormField(min_length=1, max_length=64)],
    rule: Annotated[str, FormField(max_length=255)] = "",
) -> Response:
    """Compare, keep the comparison, and show it."""
    made = keep_diagnoses(store, compare(store, a.strip(), b.strip(), rule=store.catalog.rule(rule) if rule else None))
    return RedirectResponse(url(f"comparisons/{made.comparison_id}"), 303)


@router.get("/comparisons/{comparison_id}", dependencies=READ)
def comparison(store: Archive, viewer: Visitor, comparison_id: str) -> str:
    """One comparison: both questions, every test, and where the runs disagree."""
    found = store.catalog.comparison(comparison_id)
    verdict, reason = sentences.verdict_and_reason(found)
    page = Page(
        title="A against B",
        here="comparisons",
        crumbs=(("comparisons", "Comparisons"),),
        lead=(f"Comparison {found.comparison_id}, A - B throughout",),
        verdict=(
            f"{verdict}{f' — {reason}' if reason else ''}.",
            sentences.exploratory(found),
            sentences.chance(found),
        ),
        alarms=sentences.flags(found),
        sections=(*_answers(found), *_flipped(store, found)),
    )
    return html(page, viewer)


def _answers(found: Comparison) -> list[Section]:
    arms = Section(
        title="",
        name="arms",
        links=(
            link(f"A: run {found.run_a[:12]}", f"runs/{found.run_a}"),
            link(f"B: run {found.run_b[:12]}", f"runs/{found.run_b}"),
            outward("As JSON", f"{API}/comparisons/{found.comparison_id}"),
        ),
    )
    clean, recipe, variance = tables.clean_tests(found), recipes.recipe_table(found), recipes.variance_table(found)
    sections = [
        arms,
        Section(
            title="Tests",
            name="tests",
            figures=tuple(figures.forest_figures(found)),
            tables=(tables.tests(found), tables.methods(found), *((clean,) if clean else ())),
            empty="No benchmark could be tested.",
        ),
    ]
    questions = tuple(f"{question} {answer}" for question, answer in sentences.two_questions(found))
    if questions or recipe or variance:
        sections.append(
            Section(
                title="Checkpoints and recipes",
                name="questions",
                notes=(*questions, *filter(None, [sentences.recipe_basis(found)]), *recipes.origins(found)),
                tables=tuple(t for t in (recipe, variance) if t),
            )
        )
    return sections


def _flipped(store: Store, found: Comparison) -> list[Section]:
    kept = store.blobs.get_json(found.diagnoses_blob) if found.diagnoses_blob else []
    diagnoses = [from_json(Diagnosis, each) for each in kept]
    return [
        Section(
            title=f"Flipped items of {shown.title}",
            name=f"flips-{number}",
            notes=shown.sentences,
            links=(
                link(
                    f"All discordant items of {diagnosis.benchmark}",
                    f"runs/{found.run_a}/items",
                    benchmark=diagnosis.benchmark,
                    discordant_with=found.run_b,
                ),
            ),
            tables=shown.tables,
            texts=tuple(
                Text(
                    label=item.headline,
                    body="\n\n".join(f"{part}:\n{body}" for part, body in item.parts),
                    is_open=False,
                )
                for item in shown.items
            ),
        )
        for number, (shown, diagnosis) in enumerate(zip(flips.shown_diagnoses(diagnoses), diagnoses, strict=True))
    ]
