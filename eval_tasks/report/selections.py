"""A selection among checkpoints in, its sentences and tables out. Knows no markup."""

from __future__ import annotations

from dataclasses import dataclass

from eval_tasks.records import BenchmarkSelection, Confirmation, Selection
from eval_tasks.report.numbers import (
    amount,
    change,
    change_interval,
    count,
    deviation,
    interval,
    probability,
    unit_name,
)
from eval_tasks.report.tables import Column, Table
from eval_tasks.report.text import one_line

_MOST_ROWS = 60
_LONGEST_NAME = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSelection:
    """One benchmark's selection, ready to be set."""

    title: str
    sentences: tuple[str, ...]
    table: Table | None


def shown_selections(selection: Selection) -> tuple[ShownSelection, ...]:
    """Benchmarks in their order."""
    return tuple(
        ShownSelection(
            title=one_line(f"{found.benchmark} · {found.metric}", _LONGEST_NAME),
            sentences=sentences(found),
            table=_table(found, number) if found.candidates else None,
        )
        for number, found in enumerate(selection.benchmarks, start=1)
    )


def sentences(found: BenchmarkSelection) -> tuple[str, ...]:
    """The best, how much of it is luck, what cannot be told from it, and what the other half says."""
    name = one_line(f"{found.benchmark} {found.metric}", _LONGEST_NAME)
    if not found.candidates:
        return (f"{name}: not selected: {found.not_selected}.",)
    best, unit = found.candidates[0], found.unit
    k, n_set = len(found.candidates), sum(c.in_set for c in found.candidates)
    said = [
        f"{name}: best of {k} on {count(found.n_items)} items is {best.label} with {amount(best.score, unit)}; the "
        f"best of {k} equal checkpoints would look {_size(found.optimism, unit)} better than it is. "
        f"Expected on new items: {amount(best.shrunk, unit)}.",
        f"{n_set} of {k} {'is' if n_set == 1 else 'are'} not shown to be worse than the best (95 % for all at once)"
        + (": " + ", ".join(c.label for c in found.candidates if c.in_set) if n_set <= 8 else "")
        + ".",
    ]
    if found.confirmation is not None:
        said.append(_confirmed(found.confirmation, unit))
    noise = found.noise
    if noise is not None and noise.sd is not None:
        prior = f"; seed prior {deviation(noise.seed_sd, unit)} ({noise.seed_study})" if noise.seed_study else ""
        said.append(
            f"Checkpoints of this training run wobble by {deviation(noise.sd, unit)} around their trend (SD over "
            f"{noise.n_looks} looks, item noise apart){prior}."
        )
    return tuple(said)


def _confirmed(c: Confirmation, unit: str) -> str:
    p = f"p = {probability(c.p)}"
    return (
        f"Selected on {count(c.n_select)} items: {c.selected} ({amount(c.score_select, unit)}). On the other "
        f"{count(c.n_confirm)}: {amount(c.score, unit)} {interval(c.ci95, unit)}; minus {c.against} "
        f"{change(c.delta, unit)} {change_interval(c.delta_ci95, unit)}, {p}."
    )


def _size(value: float | None, unit: str) -> str:
    if value is None:
        return "an unknown amount"
    return f"{100 * value:.1f} points" if unit == "fraction" else f"{value:.4f} {unit_name(unit)}"


def _table(found: BenchmarkSelection, number: int) -> Table:
    rows = found.candidates[:_MOST_ROWS]
    left_out = f"; shown: {len(rows)} of {len(found.candidates)}" if len(rows) < len(found.candidates) else ""
    return Table(
        name=f"selection-{number}",
        caption=f"Checkpoints by score, best first{left_out}",
        columns=(
            Column(heading="Checkpoint"),
            Column(heading="Score", style="number"),
            Column(heading="Expected on new items", style="number"),
            Column(heading="May be the best"),
            Column(heading="Run", style="code"),
        ),
        rows=tuple(
            (
                one_line(c.label, _LONGEST_NAME),
                amount(c.score, found.unit),
                amount(c.shrunk, found.unit),
                "yes" if c.in_set else "no",
                c.run_id[:12],
            )
            for c in rows
        ),
    )
