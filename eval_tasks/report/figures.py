"""Records in, captioned figures with a text alternative out. Decides what is drawn; `plots` decides how."""

from __future__ import annotations

import math
from dataclasses import dataclass

from eval_tasks.records import Comparison, DecisionRule, Measurement, PairedTest
from eval_tasks.records.verdict import DEFAULT_MARGIN
from eval_tasks.report import sentences
from eval_tasks.report.numbers import amount, change, change_interval, interval, unit_name
from eval_tasks.report.plots import Mark, PlotRow, Shape, interval_figure
from eval_tasks.report.text import one_line
from eval_tasks.report.view import ReportView

_MOST_ROWS = 60
_LABEL_LIMIT = 34


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Inline SVG, what it shows in words for who cannot see it, and a caption for everyone."""

    name: str
    svg: str
    alternative: str
    caption: str


def score_figures(view: ReportView) -> list[Figure]:
    """One interval plot for each unit, in the order the units first appear."""
    drawable = [m for m in view.measurements if _scaled(m.score, m.unit) is not None]
    figures = []
    for number, unit in enumerate(dict.fromkeys(m.unit for m in drawable), start=1):
        all_rows = [m for m in drawable if m.unit == unit]
        rows = sorted(all_rows, key=lambda m: not m.primary)[:_MOST_ROWS]
        name = f"scores-{number}"
        svg = interval_figure([_score_row(m, view) for m in rows], name=name, axis_label=_axis(unit, rows))
        words = (f"{m.benchmark} {m.metric} {amount(m.score, unit)} {interval(m.ci95, unit)}" for m in rows)
        figures.append(
            Figure(
                name=name,
                svg=svg,
                alternative=f"Interval plot in {unit_name(unit)}. " + "; ".join(one_line(w, 120) for w in words) + ".",
                caption=_score_caption(rows, view) + _left_out(len(rows), len(all_rows)),
            )
        )
    return figures


def forest_figures(comparison: Comparison) -> list[Figure]:
    """One forest plot of A - B for each unit; the margin of equivalence is a band around zero."""
    drawable = [t for t in sentences.shown_tests(comparison) if _scaled(t.delta, t.unit) is not None]
    figures = []
    for number, unit in enumerate(dict.fromkeys(t.unit for t in drawable), start=1):
        all_rows = [t for t in drawable if t.unit == unit]
        rows = all_rows[:_MOST_ROWS]
        name = f"deltas-{number}"
        margins = [_margin(comparison.rule, t) for t in rows]
        direction = "right of zero: A better" if rows[0].higher_is_better else "left of zero: A better"
        if len({t.higher_is_better for t in rows}) > 1:
            direction = "which side is better differs by row"
        svg = interval_figure(
            [_delta_row(t, margin) for t, margin in zip(rows, margins, strict=True)],
            name=name,
            axis_label=f"A − B, {unit_name(unit)} ({direction})",
            zero=True,
        )
        bands = sorted({margin for margin in margins if margin})
        bands_in_words = " or ".join(amount(m, unit) for m in bands)
        band = (
            f" Shaded: {bands_in_words} {unit_name(unit)}, the margin within which arms are EQUIVALENT."
            if bands
            else ""
        )
        figures.append(
            Figure(
                name=name,
                svg=svg,
                alternative=f"Forest plot of A minus B in {unit_name(unit)}. "
                + "; ".join(one_line(sentences.effect(t), 120) for t in rows)
                + ".",
                caption="Differences with 95 % intervals. Filled square: called different; open circle: not."
                + f"{band}{_left_out(len(rows), len(all_rows))}",
            )
        )
    return figures


def _margin(rule: DecisionRule | None, test: PairedTest) -> float:
    """The margin within which a difference is EQUIVALENT: the rule's where it names the benchmark; 0 for none."""
    if rule is not None and rule.margin > 0 and (test.primary or test.benchmark in rule.benchmarks):
        return rule.margin
    return DEFAULT_MARGIN if test.unit == "fraction" else 0.0


def _scaled(value: float | None, unit: str) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return 100 * value if unit == "fraction" else value


def _ends(ends: tuple[float, float] | None, unit: str) -> tuple[float, float] | None:
    low, high = (None, None) if ends is None else (_scaled(ends[0], unit), _scaled(ends[1], unit))
    return None if low is None or high is None else (low, high)


def _score_row(m: Measurement, view: ReportView) -> PlotRow:
    point = _scaled(m.score, m.unit)
    assert point is not None
    marks = [Mark(point=point, ends=_ends(m.ci95, m.unit), shape="cross" if m.quarantined else "filled")]
    clean = m.companion
    clean_point = _scaled(clean.score, m.unit) if clean is not None else None
    if clean is not None and clean_point is not None:
        marks.append(Mark(point=clean_point, ends=_ends(clean.ci95, m.unit), shape="hollow", offset=0.22))
    label = one_line(f"{m.benchmark} · {m.metric}", _LABEL_LIMIT)
    return PlotRow(
        label=f"{label} (quarantined)" if m.quarantined else label,
        value=f"{amount(m.score, m.unit)} {interval(m.ci95, m.unit)}",
        marks=tuple(marks),
        reference=_scaled(_chance(m, view), m.unit),
    )


def _chance(m: Measurement, view: ReportView) -> float | None:
    benchmark = view.benchmark(m.benchmark_id)
    return benchmark.chance_level if benchmark is not None and m.unit == "fraction" else None


def _delta_row(test: PairedTest, margin: float) -> PlotRow:
    point = _scaled(test.delta, test.unit)
    assert point is not None
    shape: Shape = "hollow" if test.verdict == "INDISTINGUISHABLE" else "filled"
    return PlotRow(
        label=one_line(f"{test.benchmark} · {test.metric}", _LABEL_LIMIT),
        value=f"{change(test.delta, test.unit)} {change_interval(test.ci95, test.unit)}",
        marks=(Mark(point=point, ends=_ends(test.ci95, test.unit), shape=shape),),
        margin=_scaled(margin, test.unit) or 0.0,
    )


def _axis(unit: str, rows: list[Measurement]) -> str:
    better = {m.higher_is_better for m in rows}
    if len(better) > 1:
        return unit_name(unit)
    return f"{unit_name(unit)} ({'higher' if better == {True} else 'lower'} is better)"


def _score_caption(rows: list[Measurement], view: ReportView) -> str:
    said = ["Scores with 95 % intervals."]
    if any(m.companion is not None for m in rows):
        said.append("Filled square: all items; open circle below it: clean items only.")
    if any(m.quarantined for m in rows):
        said.append("Cross: quarantined.")
    if any(_chance(m, view) is not None for m in rows):
        said.append("Dotted tick: chance level.")
    return " ".join(said)


def _left_out(shown: int, total: int) -> str:
    return f" Shown: {shown} of {total}; the table has all." if shown < total else ""
