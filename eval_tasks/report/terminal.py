"""A `ReportView` in, a rich renderable or plain text out. Needs no colour to be understood; reads at 80 columns."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from eval_tasks.records import Comparison, GuardReport, HealthLook, Measurement, Selection
from eval_tasks.report import selections, sentences
from eval_tasks.report.abilities import ability_cell, difference_cell
from eval_tasks.report.health_sentences import false_alarms, finding_sentence, health_verdict
from eval_tasks.report.numbers import (
    ABSENT,
    amount,
    change,
    change_interval,
    count,
    decimal,
    deviation,
    duration,
    interval,
    probability,
)
from eval_tasks.report.recipes import origins, shown_recipe_tests
from eval_tasks.report.resolution import could_have_seen
from eval_tasks.report.text import clean, one_line
from eval_tasks.report.view import ReportView

_NAME_LIMIT = 40


def render_terminal(view: ReportView) -> RenderableType:
    """The report as a rich renderable: scorecard, guard, comparison, verdict."""
    parts: list[RenderableType] = [Text(clean(sentences.title(view)), style="bold")]
    if view.run is not None:
        parts.append(Text(f"run {view.run.run_id}  {view.run.status}  environment {clean(view.run.environment)}"))
    parts += [Text(clean(f"SUSPECT: {reason}"), style="bold") for reason in view.suspect]
    if view.measurements:
        parts += [Text(), _scorecard(view.measurements)]
    if view.guard is not None:
        parts += [Text(), *_guard(view.guard)]
    if view.contract is not None:
        n_held = sum(result.passed for result in view.contract.results)
        parts.append(
            Text(f"Data contract: {n_held} of {len(view.contract.results)} expectations met, by {view.contract.by}")
        )
    if view.health is not None:
        parts += [Text(), *_health(view.health)]
    if view.selection is not None:
        parts += [Text(), *_selection(view.selection)]
    if view.comparison is not None:
        parts += [Text(), *_comparison(view.comparison)]
    if view.shard_seconds:
        parts.append(
            Text(f"\n{len(view.shard_seconds)} shards, {duration(sum(view.shard_seconds.values()))} of compute")
        )
    parts += [Text(clean(note)) for note in view.notes]
    if seen := could_have_seen(view):
        parts += [Text(), Text(clean(seen))]
    parts += [Text(), *(Text(clean(sentence), style="dim") for sentence in sentences.not_claimed(view))]
    if view.comparison is not None:
        parts += [Text(), Text(clean(sentences.verdict(view.comparison)), style="bold")]
    return Group(*parts)


def terminal_text(view: ReportView, width: int = 100) -> str:
    """The report as plain text without colour, at most `width` columns wide."""
    buffer = io.StringIO()
    console = Console(file=buffer, width=width, color_system=None, force_terminal=False, legacy_windows=False)
    console.print(render_terminal(view), markup=False, highlight=False)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def _table(title: str, headings: Iterable[tuple[str, bool]]) -> Table:
    """Two-line cells keep eight columns readable at 80 characters: names, intervals and q stand on the second line."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0), leading=0)
    for heading, is_number in headings:
        table.add_column(
            heading,
            justify="right" if is_number else "left",
            no_wrap=is_number,
            min_width=None if is_number else 12,
            overflow="fold",
        )
    return table


def _cell(*lines: str) -> Text:
    """Lines of cleaned text; an indent is kept."""
    indented = ((line[: len(line) - len(line.lstrip(" "))], line) for line in lines if line)
    return Text("\n".join(indent + one_line(line, 200) for indent, line in indented))


def _indented(text: str, columns: int) -> Padding:
    """A sentence whose every line, wrapped ones too, stands that far in."""
    return Padding(Text(one_line(text, 400)), (0, 0, 0, columns))


def _name(name: str, metric: str) -> Text:
    return _cell(one_line(name, _NAME_LIMIT), f"  {one_line(metric, _NAME_LIMIT)}")


def _scorecard(measurements: tuple[Measurement, ...]) -> Table:
    abilities = any(m.ability is not None for m in measurements)
    noted = any(sentences.statuses(m) or m.quarantined for m in measurements)
    columns = [("benchmark\n  metric", False), ("score\nci95", True), ("n", True), ("clean companion", False)]
    columns += [("ability", False)] if abilities else []
    table = _table("Scores in points, with 95 % intervals", columns + ([("notes", False)] if noted else []))
    for m in measurements:
        quarantine = f"QUARANTINED: {m.quarantine_reason}" if m.quarantined else ""
        cells = [
            _name(f"{m.benchmark} {m.version}", sentences.score_name(m)),
            _cell(amount(m.score, m.unit), interval(m.ci95, m.unit)),
            _cell(count(m.n) if m.n == m.n_attempted else f"{count(m.n)} of {count(m.n_attempted)}"),
            _cell(sentences.companion(m)),
            *([_cell(*ability_cell(m.ability).split("; "))] if abilities else []),
            _cell(quarantine, sentences.statuses(m)),
        ]
        table.add_row(*cells[: len(table.columns)])
    return table


def _guard(guard: GuardReport) -> list[RenderableType]:
    if guard.passed:
        return [Text(f"Guard: passed, {len(guard.checks)} checks")]
    lines: list[RenderableType] = [Text(f"Guard: {_excursions(guard)}, quarantined", style="bold")]
    for excursion in guard.excursions:
        found = f"observed {excursion.observed}, expected {excursion.expected}"
        lines.append(_indented(f"{excursion.benchmark} {excursion.metric} {excursion.check}: {found}", 2))
        lines += [
            _indented(f"{s.item_id}: output {one_line(s.output, 60)!r}, gold {one_line(s.gold, 30)!r}", 4)
            for s in excursion.samples
        ]
    return lines


def _excursions(guard: GuardReport) -> str:
    return "1 excursion" if len(guard.excursions) == 1 else f"{len(guard.excursions)} excursions"


def _health(look: HealthLook) -> list[RenderableType]:
    lines: list[RenderableType] = [Text(clean(health_verdict(look)), style="bold")]
    lines += [_indented(finding_sentence(finding), 2) for finding in look.findings]
    lines += [_indented(note, 2) for note in look.notes]
    return [*lines, Text(clean(false_alarms(look)), style="dim")]


def _selection(selection: Selection) -> list[RenderableType]:
    lines: list[RenderableType] = [Text(f"Selection among {len(selection.runs)} checkpoints", style="bold")]
    for found in selection.benchmarks:
        lines += [_indented(sentence, 2) for sentence in selections.sentences(found)]
    return [*lines, *(_indented(note, 2) for note in selection.notes)]


def _comparison(comparison: Comparison) -> list[RenderableType]:
    labels = (one_line(comparison.label_a, _NAME_LIMIT), one_line(comparison.label_b, _NAME_LIMIT))
    table = _table(
        f"A ({labels[0]}) minus B ({labels[1]}), paired by item",
        [
            ("benchmark\n  metric", False),
            ("delta\nci95", True),
            ("p\nq", True),
            ("b/c", True),
            ("MDE", True),
            *([("ability", False)] if comparison.abilities else []),
            ("verdict", False),
        ],
    )
    for test in sentences.shown_tests(comparison):
        table.add_row(
            _name(test.benchmark, test.metric),
            _cell(change(test.delta, test.unit), change_interval(test.ci95, test.unit)),
            _cell(probability(test.p), probability(test.q)),
            _cell(ABSENT if test.b is None else f"{count(test.b)}/{count(test.c)}"),
            _cell(amount(test.mde, test.unit)),
            *([_cell(*difference_cell(comparison, test).split("; "))] if comparison.abilities else []),
            _cell(sentences.call(test)),
        )
    said = (sentences.scored_by(comparison), sentences.chance(comparison), sentences.exploratory(comparison))
    lines = [Text(clean(sentence)) for sentence in (*sentences.flags(comparison), *said) if sentence]
    return [table, Text(), *lines, *_recipes(comparison)]


def _recipes(comparison: Comparison) -> list[RenderableType]:
    """The two questions apart; the recipes' table where they have an answer."""
    lines: list[RenderableType] = [
        Text(clean(f"{question} {answer}")) for question, answer in sentences.two_questions(comparison)
    ]
    shown = shown_recipe_tests(comparison)
    if not shown:
        return [Text(), *lines] if lines else []
    table = _table(
        "Recipes: A minus B with the noise between training seeds",
        [
            ("benchmark\n  metric", False),
            ("delta\nci95", True),
            ("p\nq", True),
            ("seed SD\ndf", True),
            ("MDE", True),
            ("verdict", False),
        ],
    )
    for test in shown:
        seed = next((term.sd for term in test.variances if term.source == "training seed"), None)
        table.add_row(
            _name(test.benchmark, test.metric),
            _cell(change(test.delta, test.unit), change_interval(test.ci95, test.unit)),
            _cell(probability(test.p), probability(test.q)),
            _cell(deviation(seed, test.unit), decimal(test.df)),
            _cell(amount(test.mde, test.unit)),
            _cell(sentences.recipe_call(test)),
        )
    basis = Text(clean(sentences.recipe_basis(comparison)))
    return [Text(), table, basis, *(Text(clean(origin)) for origin in origins(comparison)), Text(), *lines]
