"""What a regrading moved, of one run or many -> JSON, text for a terminal, and one self-contained HTML file."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

from eval_tasks.records import to_json
from eval_tasks.records.diagnosis import FlippedItem
from eval_tasks.records.regrade import GroupMove, MovedScores
from eval_tasks.report.flips import ShownItem
from eval_tasks.report.numbers import ABSENT, amount, change, change_interval, count, interval, probability
from eval_tasks.report.page import template
from eval_tasks.report.tables import Column, Table
from eval_tasks.report.text import clean, excerpt, one_line

SCHEMA_VERSION = "1"
_NAME = "checkpoint-eval/regrade"
_SAMPLES_BUDGET = 60_000
_LONGEST_EXCERPT = 1_200
_LONGEST_NAME = 80
_MOST_DETAILED = 40  # benchmarks of runs whose groups and items a page shows; all are in its first table

_HEADINGS = ("Old", "n old", "New", "n new", "New - old", "Flips")


def regrade_json(moved: Sequence[MovedScores]) -> dict[str, Any]:
    """Every number unrounded, in fractions or the metric's unit; field names are those of the records."""
    return {"schema": _NAME, "schema_version": SCHEMA_VERSION, "moved": [to_json(m) for m in moved]}


def regrade_text(moved: Sequence[MovedScores], width: int = 120) -> str:
    """For a terminal: a sentence and a table for each benchmark of each run, and the ids of items that flipped."""
    buffer = io.StringIO()
    console = Console(file=buffer, width=width, color_system=None, force_terminal=False, legacy_windows=False)
    for number, m in enumerate(moved, start=1):
        console.print(f"{title(m)}\n{sentence(m)}", markup=False, highlight=False)
        for note in m.notes:
            console.print(f"  {clean(note)}", markup=False, highlight=False)
        if m.groups:
            console.print(_rich(group_table(m, number)), markup=False, highlight=False)
        if m.flipped:
            shown = ", ".join(f"{item.item_id} ({'lost' if item.lost else 'gained'})" for item in m.flipped)
            console.print(f"  flipped: {one_line(shown, 600)}", markup=False, highlight=False)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def regrade_html(moved: Sequence[MovedScores]) -> str:
    """One HTML document without script or outside host; the same records give the same bytes."""
    detailed = moved[:_MOST_DETAILED]
    n_texts = 4 * sum(len(m.flipped) for m in detailed) or 1
    limit = min(_LONGEST_EXCERPT, max(120, _SAMPLES_BUDGET // n_texts))
    shown = [
        {
            "title": title(m),
            "sentence": sentence(m),
            "notes": m.notes,
            "table": group_table(m, number) if m.groups else None,
            "flipped": [_item(item, limit) for item in m.flipped],
        }
        for number, m in enumerate(detailed, start=1)
    ]
    context = {
        "title": "What regrading moved",
        "overview": overview(moved),
        "shown": shown,
        "n_left_out": len(moved) - len(detailed),
    }
    return template("regrade.html.j2").render(context)


def title(m: MovedScores) -> str:
    """The run and the benchmark."""
    return one_line(f"{m.label} · {m.benchmark} {m.version} · {m.metric}", 2 * _LONGEST_NAME)


def sentence(m: MovedScores) -> str:
    """Old and new score with their n, the paired difference, and how many items flipped."""
    total = m.total
    new = f"{m.new_grader}: {amount(total.new, m.unit)} {interval(total.new_ci95, m.unit)} (n = {count(total.n_new)})"
    if m.not_compared:
        return one_line(f"{new}. Not compared: {m.not_compared}.", 600)
    old = f"{m.old_grader}: {amount(total.old, m.unit)} {interval(total.old_ci95, m.unit)} (n = {count(total.n_old)})"
    moved = (
        f"new - old {change(total.delta, m.unit)} {change_interval(total.ci95, m.unit)}, p = {probability(m.p)}, "
        f"on {count(total.n_pairs)} items that both scored"
    )
    flips = f"; {_flips(total)}" if total.lost is not None else ""
    return one_line(f"{old}; {new}; {moved}{flips}.", 900)


def overview(moved: Sequence[MovedScores]) -> Table:
    """One row for each benchmark of each run."""
    return Table(
        name="moved",
        caption="Scores and their difference, paired by item, with 95 % intervals; in points but for other units",
        columns=(
            Column(heading="Run and benchmark"),
            Column(heading="Old grader", style="code"),
            Column(heading="New grader", style="code"),
            *(Column(heading=heading, style="number") for heading in _HEADINGS),
        ),
        rows=tuple((title(m), m.old_grader or ABSENT, m.new_grader, *_numbers(m.total, m.unit)) for m in moved),
        marked=frozenset(n for n, m in enumerate(moved) if _excludes_zero(m.total)),
    )


def group_table(m: MovedScores, number: int) -> Table:
    """One row for each category or stratum."""
    return Table(
        name=f"groups-{number}",
        caption=f"{one_line(m.benchmark, _LONGEST_NAME)} by {m.by}; described, not tested: of many some move by chance",
        columns=(Column(heading=m.by.capitalize()), *(Column(heading=h, style="number") for h in _HEADINGS)),
        rows=tuple((one_line(g.group, _LONGEST_NAME), *_numbers(g, m.unit)) for g in m.groups),
        marked=frozenset(n for n, g in enumerate(m.groups) if _excludes_zero(g)),
    )


def _numbers(g: GroupMove, unit: str) -> tuple[str, ...]:
    return (
        _with_interval(amount(g.old, unit), interval(g.old_ci95, unit)),
        count(g.n_old),
        _with_interval(amount(g.new, unit), interval(g.new_ci95, unit)),
        count(g.n_new),
        _with_interval(change(g.delta, unit), change_interval(g.ci95, unit)),
        _flips(g),
    )


def _with_interval(number: str, ends: str) -> str:
    return number if ends == ABSENT else f"{number} {ends}"


def _flips(g: GroupMove) -> str:
    if g.lost is None or g.gained is None:
        return ABSENT
    return f"{count(g.lost)} lost, {count(g.gained)} gained" if g.lost or g.gained else "no flips"


def _excludes_zero(g: GroupMove) -> bool:
    return g.ci95 is not None and not g.ci95[0] <= 0 <= g.ci95[1]


def _item(item: FlippedItem, limit: int) -> ShownItem:
    groups = [f"{k} {v}" for k, v in (("category", item.category), ("stratum", item.stratum)) if v is not None]
    direction = "lost: right by the old grader, wrong by the new" if item.lost else "gained: wrong before, right now"
    parts = (
        ("Item", item.prompt),
        ("Gold", item.gold),
        ("Output", item.output_a),
        ("Old: taken from it", item.extracted_b),
        ("New: taken from it", item.extracted_a),
    )
    return ShownItem(
        headline=one_line(f"{item.item_id} ({'; '.join([direction, *groups])})", 200),
        parts=tuple((name, excerpt(text, limit)) for name, text in parts if text is not None),
    )


def _rich(table: Table) -> RichTable:
    made = RichTable(title=table.caption, title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for column in table.columns:
        made.add_column(column.heading, justify="right" if column.style == "number" else "left", overflow="fold")
    for row in table.rows:
        made.add_row(*(clean(cell) for cell in row))
    return made
