"""A comparison in, tables of the second question and of the variances it carries out. Knows no markup."""

from __future__ import annotations

from collections.abc import Mapping

from eval_tasks.records import Comparison, PairedTest, RecipeTest, VarianceTerm
from eval_tasks.report import sentences
from eval_tasks.report.numbers import (
    ABSENT,
    amount,
    change,
    change_interval,
    count,
    decimal,
    deviation,
    probability,
)
from eval_tasks.report.tables import Column, Table
from eval_tasks.report.text import one_line

_SOURCES: Mapping[str, str] = {
    "items": "Items",
    "engine": "Engine",
    "environment": "Environments",
    "training seed": "Training seed",
}
_LONGEST_NAME = 60


def shown_recipe_tests(comparison: Comparison) -> tuple[RecipeTest, ...]:
    """The tests of the recipes, a composite rule's own first; none where the question has no answer."""
    recipes = comparison.recipes
    if recipes is None or not recipes.answerable:
        return ()
    return recipes.tests if recipes.composite is None else (recipes.composite, *recipes.tests)


def recipe_table(comparison: Comparison) -> Table | None:
    """Every benchmark under the second question; None where it has no answer."""
    shown = shown_recipe_tests(comparison)
    if not shown:
        return None
    headings = ("Δ = A − B", "Total error", "df", "95 % interval", "p", "q", "MDE", "Runs needed")
    return Table(
        name="recipes",
        caption="The recipes by benchmark: training seeds, items, engine and environments in the error",
        columns=(
            Column(heading="Benchmark"),
            *(Column(heading=h, style="number") for h in headings),
            Column(heading="Verdict"),
        ),
        rows=tuple(_row(test) for test in shown),
        marked=frozenset(i for i, test in enumerate(shown) if test.not_answerable),
    )


def _row(test: RecipeTest) -> tuple[str, ...]:
    name = one_line(f"{test.benchmark} · {test.metric}", _LONGEST_NAME)
    return (
        name,
        change(test.delta, test.unit),
        deviation(test.se, test.unit),
        decimal(test.df),
        change_interval(test.ci95, test.unit),
        probability(test.p),
        probability(test.q),
        amount(test.mde, test.unit),
        ABSENT if test.seeds_needed is None else count(test.seeds_needed),
        sentences.recipe_call(test),
    )


def variance_table(comparison: Comparison) -> Table | None:
    """What each benchmark's difference carries, as standard deviations by source; None where nothing is recorded."""
    tests = _carrying(comparison)
    sources = [s for s in _SOURCES if any(term.source == s for test in tests for term in test.variances)]
    if not sources:
        return None
    return Table(
        name="variance-terms",
        caption="Standard deviation of A − B by source of noise",
        columns=(Column(heading="Benchmark"), *(Column(heading=_SOURCES[s], style="number") for s in sources)),
        rows=tuple(
            (
                one_line(f"{test.benchmark} · {test.metric}", _LONGEST_NAME),
                *(_term_cell(test, source) for source in sources),
            )
            for test in tests
            if test.variances
        ),
    )


def _carrying(comparison: Comparison) -> tuple[PairedTest | RecipeTest, ...]:
    """The tests whose variances are shown: the recipes' hold the seed's beside the checkpoints'."""
    recipes = comparison.recipes
    return recipes.tests if recipes is not None and recipes.tests else comparison.tests


def _term_cell(test: PairedTest | RecipeTest, source: str) -> str:
    found = next((term for term in test.variances if term.source == source), None)
    if found is None:
        return ABSENT
    if found.sd is None:
        return "not measured"
    return f"{deviation(found.sd, test.unit)} ({found.standing})"


def origins(comparison: Comparison) -> tuple[str, ...]:
    """Where each source's figures come from, each origin once; the items' stand in the table of tests."""
    terms: dict[VarianceTerm, None] = {}
    for test in _carrying(comparison):
        for term in test.variances:
            if term.source != "items":
                terms.setdefault(VarianceTerm(source=term.source, standing=term.standing, sd=None, origin=term.origin))
    return tuple(f"{_SOURCES[term.source]}, {term.standing}: {term.origin}." for term in terms)
