"""Diagnoses in, what the page and the terminal show of them out: sentences, tables and items side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eval_tasks.records.diagnosis import Diagnosis, FlippedItem, GroupedFlips
from eval_tasks.report.numbers import count, probability
from eval_tasks.report.tables import Column, Table
from eval_tasks.report.text import excerpt, one_line

MOST_GROUPS = 15
_SAMPLES_BUDGET = 60_000
_LONGEST_EXCERPT = 1_200
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownItem:
    """One flipped item: a headline and its texts, named."""

    headline: str
    parts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownDiagnosis:
    """One benchmark's flips, ready to be set."""

    title: str
    sentences: tuple[str, ...]
    tables: tuple[Table, ...]
    items: tuple[ShownItem, ...]


def shown_diagnoses(diagnoses: Sequence[Diagnosis]) -> tuple[ShownDiagnosis, ...]:
    """Benchmarks in their order; raw texts share one budget, so that the page stays small."""
    n_texts = 6 * sum(len(d.items) for d in diagnoses) or 1
    limit = min(_LONGEST_EXCERPT, max(120, _SAMPLES_BUDGET // n_texts))
    return tuple(
        ShownDiagnosis(
            title=one_line(f"{d.benchmark} · {d.metric}", _LONGEST_NAME),
            sentences=sentences(d),
            tables=tuple(group_table(d, g) for g in d.by),
            items=tuple(_item(i, limit) for i in d.items),
        )
        for d in diagnoses
    )


def sentences(d: Diagnosis) -> tuple[str, ...]:
    """How many items flipped, and whether they concentrate."""
    if d.not_diagnosed:
        return (f"Not diagnosed: {one_line(d.not_diagnosed, 300)}.",)
    flipped = d.lost + d.gained
    found = [
        f"{count(flipped)} of {count(d.n_pairs)} items flipped: {count(d.lost)} lost (only B right), "
        f"{count(d.gained)} gained (only A right)."
    ]
    for g in d.by:
        what = []
        if g.p_flips is not None:
            yes = "concentrate in some" if g.p_flips <= 0.05 else "are spread as chance would have it"
            what.append(f"flips {yes} (p = {probability(g.p_flips)})")
        if g.p_direction is not None:
            yes = "are more frequent in some" if g.p_direction <= 0.05 else "are spread as the flips are"
            what.append(f"losses {yes} (p = {probability(g.p_direction)})")
        if what:
            found.append(f"Over the {count(g.n_groups)} groups by {g.by}, " + ", and ".join(what) + ".")
    return tuple(found)


def group_table(d: Diagnosis, g: GroupedFlips) -> Table:
    """The groups that lost most, first."""
    shown = g.groups[:MOST_GROUPS]
    more = f"; the first {len(shown)} of {count(g.n_groups)}" if g.n_groups > len(shown) else ""
    headings = (g.by.capitalize(), "Items", "Lost", "Gained", "Net", "p", "q")
    return Table(
        name=f"flips-{one_line(d.benchmark, _LONGEST_NAME)}-{g.by}",
        caption=f"{one_line(d.benchmark, _LONGEST_NAME)} by {g.by}, those that lost most first{more}",
        columns=tuple(Column(heading=h, style="" if k == 0 else "number") for k, h in enumerate(headings)),
        rows=tuple(
            (
                one_line(x.group, _LONGEST_NAME),
                count(x.n),
                count(x.lost),
                count(x.gained),
                f"{x.gained - x.lost:+d}" if x.gained != x.lost else "0",
                probability(x.p),
                probability(x.q),
            )
            for x in shown
        ),
        marked=frozenset(k for k, x in enumerate(shown) if x.q <= 0.05),
    )


def _item(item: FlippedItem, limit: int) -> ShownItem:
    groups = [f"{k} {v}" for k, v in (("category", item.category), ("cluster", item.cluster)) if v is not None]
    direction = "lost: B right, A wrong" if item.lost else "gained: A right, B wrong"
    parts = (
        ("Item", item.prompt),
        ("Gold", item.gold),
        ("Output of A", item.output_a),
        ("Output of B", item.output_b),
        ("Extracted of A", item.extracted_a),
        ("Extracted of B", item.extracted_b),
    )
    return ShownItem(
        headline=one_line(f"{item.item_id} ({'; '.join([direction, *groups])})", 200),
        parts=tuple((name, excerpt(text, limit)) for name, text in parts if text is not None),
    )
