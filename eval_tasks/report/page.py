"""A `ReportView` in, one self-contained HTML file out: no script, no outside host, the same bytes for the same view."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from eval_tasks.records import GuardReport
from eval_tasks.report import (
    figures,
    flips,
    health,
    health_sentences,
    item_response,
    recipes,
    resolution,
    selections,
    sentences,
    tables,
)
from eval_tasks.report.text import excerpt, one_line, printed
from eval_tasks.report.view import ReportView

_TEMPLATES = Path(__file__).parent / "templates"
_SAMPLES_BUDGET = 80_000  # characters of raw outputs on the whole page
_LONGEST_EXCERPT = 1_500
_LONGEST_TEXT = 2_000
_LONGEST_LINE = 300
_MOST_EXCURSIONS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One raw output, shortened to what fits the page."""

    item_id: str
    status: str
    parts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownExcursion:
    """An excursion with its shortened samples."""

    title: str
    finding: str
    samples: tuple[Sample, ...]


def report_html(view: ReportView) -> str:
    """The report as one HTML document."""
    comparison, guard = view.comparison, view.guard
    context: dict[str, Any] = {
        "view": view,
        "title": sentences.title(view),
        "verdict": sentences.verdict_and_reason(comparison) if comparison else None,
        "evidence": sentences.exploratory(comparison) if comparison else "",
        "chance": sentences.chance(comparison) if comparison else "",
        "not_claimed": sentences.not_claimed(view),
        "score_figures": figures.score_figures(view),
        "forest_figures": figures.forest_figures(comparison) if comparison else [],
        "scores": tables.scorecard(view.measurements, "Scores in points unless the metric names another unit"),
        "baseline_scores": tables.scorecard(view.baseline_measurements, "Scores of the baseline, B", "baseline-scores"),
        "companions": tables.companions(view.measurements),
        "tests": tables.tests(comparison) if comparison else None,
        "methods": tables.methods(comparison) if comparison else None,
        "clean_tests": tables.clean_tests(comparison) if comparison else None,
        "flags": sentences.flags(comparison) if comparison else (),
        "two_questions": sentences.two_questions(comparison) if comparison else (),
        "recipe_basis": sentences.recipe_basis(comparison) if comparison else "",
        "recipe_tests": recipes.recipe_table(comparison) if comparison else None,
        "variance_terms": recipes.variance_table(comparison) if comparison else None,
        "variance_origins": recipes.origins(comparison) if comparison else (),
        "variances": _pairs("variances", "Sources of variance", comparison.sources_of_variance if comparison else {}),
        "diagnoses": flips.shown_diagnoses(view.diagnoses),
        "health_verdict": health_sentences.health_verdict(view.health) if view.health else "",
        "false_alarms": health_sentences.false_alarms(view.health) if view.health else "",
        "health_tests": health.findings_table(view.health) if view.health and view.health.findings else None,
        "noise": health.noise_table(view.health.noise) if view.health and view.health.noise else None,
        "selections": selections.shown_selections(view.selection) if view.selection else (),
        "items": item_response.item_table(view.item_report) if view.item_report else None,
        "item_sentences": item_response.calibration_sentences(view.item_report.calibration) if view.item_report else (),
        "item_texts": item_response.shown_texts(view.item_report) if view.item_report else (),
        "curve_figures": health.curve_figures(view.curves),
        "resolution": tables.resolution(view),
        "could_have_seen": resolution.could_have_seen(view),
        "checks": _pairs("checks", "What guard checked", guard.checks if guard else {}),
        "contract": tables.contract(view.contract) if view.contract else None,
        "excursions": _excursions(guard) if guard else (),
        "n_excursions_left_out": max(0, len(guard.excursions) - _MOST_EXCURSIONS) if guard else 0,
        "how": tables.how_run(view),
        "environment": _pairs(
            "environment", "Hardware and software", view.environment.components if view.environment else {}
        ),
        "identity": tables.identity(view),
    }
    return template("report.html.j2").render(context)


def template(name: str) -> jinja2.Template:
    """A template of a page; every value that it prints is escaped, cleaned and cut."""
    return _environment().get_template(name)


def _pairs(name: str, caption: str, values: Any) -> tables.Table | None:
    ordered = {key: values[key] for key in sorted(values)}
    return tables.pairs(name, caption, ordered, "Name") if ordered else None


def _excursions(guard: GuardReport) -> tuple[ShownExcursion, ...]:
    shown = guard.excursions[:_MOST_EXCURSIONS]
    n_texts = 4 * sum(len(excursion.samples) for excursion in shown) or 1
    limit = min(_LONGEST_EXCERPT, max(120, _SAMPLES_BUDGET // n_texts))
    return tuple(
        ShownExcursion(
            title=one_line(f"{excursion.benchmark} · {excursion.metric}: {excursion.check}", _LONGEST_LINE),
            finding=one_line(f"Observed {excursion.observed}; expected {excursion.expected}.", _LONGEST_LINE),
            samples=tuple(
                Sample(
                    item_id=one_line(sample.item_id, 80),
                    status=one_line(sample.status, 40),
                    parts=(
                        ("Prompt (end)", excerpt(sample.prompt_tail, limit)),
                        ("Output", excerpt(sample.output, limit)),
                        ("Extracted", "nothing" if sample.extracted is None else excerpt(sample.extracted, limit)),
                        ("Gold", excerpt(sample.gold, limit)),
                    ),
                )
                for sample in excursion.samples
            ),
        )
        for excursion in shown
    )


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: printed(value, _LONGEST_TEXT),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["drawn"] = _drawn
    return environment


def _drawn(figure: figures.Figure) -> Markup:
    """The figure's own SVG, which matplotlib wrote and escaped."""
    return Markup(figure.svg)  # noqa: S704
