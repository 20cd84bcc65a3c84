"""Rows of points and intervals in, inline SVG out, by matplotlib. Knows no record and rounds nothing.

The same rows give the same bytes: fixed hash salt, no date, ids prefixed with the figure's name. Marks differ by shape
and fill, never by colour alone. Colours are CSS variables of the page, so that one figure serves light and dark; text
stays text, so that it scales, can be copied and costs few bytes. A label stands above its interval, which leaves the
whole width to the axis on a phone; grid, zero and margin are drawn beside intervals only, never through a label.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Stand-ins that matplotlib takes for colours; each becomes a CSS value in the SVG.
_INK, _MARK, _FAINT, _BAND, _PAPER = "#010101", "#020202", "#030303", "#040404", "#050505"
_CSS = {
    _INK: "currentColor",
    _MARK: "var(--mark)",
    _FAINT: "var(--line)",
    _BAND: "var(--band)",
    _PAPER: "var(--paper)",
}
_WIDTH_INCHES = 5.4
_ROW_INCHES = 0.5
_FRAME_INCHES = 0.62
_CURVE_INCHES = 2.7
_FONT_POINTS = 10.5
_TICKS_INCHES = 0.2
_LANE = (-0.38, 0.12)  # of a row of height 1: where marks lie; the label stands above it
_ROWS_WITHOUT_SECOND_SCALE = 12  # with more, the scale below is out of sight when the first rows are read

Shape = Literal["filled", "hollow", "cross"]
_MARKERS: dict[Shape, str] = {"filled": "s", "hollow": "o", "cross": "x"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A point with its interval, in display units. `offset` in rows: a companion lies a little below its score."""

    point: float
    ends: tuple[float, float] | None
    shape: Shape
    offset: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotRow:
    """One line of a figure: label on the left, value in words on the right, marks, and a reference tick or none.

    `margin`: half the width of the band around zero, 0 for none.
    """

    label: str
    value: str
    marks: tuple[Mark, ...]
    reference: float | None = None
    margin: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePart:
    """A point of a curve with its interval, in display units, at a place on the axis of steps."""

    at: float
    point: float
    ends: tuple[float, float] | None


def curve_figure(parts: Sequence[CurvePart], *, name: str, axis_label: str, across_label: str) -> str:
    """A line through the points from left to right, its intervals a band, its last point marked, as `<svg>`."""
    with _style(name):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(_WIDTH_INCHES, _CURVE_INCHES), facecolor="none")
        axes = figure.add_axes((0.13, 0.2, 0.84, 0.75), facecolor="none")
        at, points = [part.at for part in parts], [part.point for part in parts]
        banded = [(part.at, *part.ends) for part in parts if part.ends is not None]
        if banded:
            axes.fill_between(
                [at for at, _, _ in banded], [low for _, low, _ in banded], [high for *_, high in banded], color=_BAND
            )
        axes.plot(at, points, color=_MARK, linewidth=1.4)
        axes.plot(at[-1:], points[-1:], color=_MARK, linestyle="none", marker="s", markersize=5)
        axes.locator_params(axis="x", nbins=6)
        axes.locator_params(axis="y", nbins=6)
        axes.ticklabel_format(useOffset=False, style="plain")
        axes.tick_params(colors=_INK, length=3, width=0.8)
        axes.grid(color=_FAINT, linewidth=0.7)
        axes.set_axisbelow(True)
        axes.set_xlabel(across_label, color=_INK, fontsize=_FONT_POINTS)
        axes.set_ylabel(axis_label, color=_INK, fontsize=_FONT_POINTS)
        for side, spine in axes.spines.items():
            spine.set_visible(side in ("left", "bottom"))
            spine.set_color(_INK)
        return _inline_svg(figure, name)


def interval_figure(rows: Sequence[PlotRow], *, name: str, axis_label: str, zero: bool = False) -> str:
    """The rows from top to bottom as an `<svg>` element; `zero` draws the line of no difference and margin bands."""
    with _style(name):
        from matplotlib.figure import Figure

        above = _TICKS_INCHES if len(rows) > _ROWS_WITHOUT_SECOND_SCALE else 0.0
        height = _ROW_INCHES * len(rows) + _FRAME_INCHES + above
        figure = Figure(figsize=(_WIDTH_INCHES, height), facecolor="none")
        axes = figure.add_axes((0.03, 0.5 / height, 0.94, 1 - (0.58 + above) / height), facecolor="none")
        reach = max((row.margin for row in rows), default=0.0)
        _draw_frame(axes, rows, axis_label, always_in=(-reach, reach) if zero else (), second_scale=above > 0)
        _draw_lanes(axes, [row.margin for row in rows], zero=zero)
        for i, row in enumerate(rows):
            _draw_row(axes, -float(i), row)
        return _inline_svg(figure, name)


@contextmanager
def _style(name: str) -> Iterator[None]:
    """matplotlib's own defaults, whatever the user's are, and ids that hang on the figure's name alone."""
    import matplotlib as mpl

    style: dict[Any, Any] = {
        "svg.hashsalt": name,
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.size": _FONT_POINTS,
        "text.parse_math": False,
        "axes.unicode_minus": False,
    }
    with mpl.rc_context({**mpl.rcParamsDefault, **style}), warnings.catch_warnings():
        # Layout measures text in matplotlib's own font, which lacks some scripts; the browser draws with its own.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        yield


def _draw_frame(
    axes: Axes, rows: Sequence[PlotRow], axis_label: str, always_in: Sequence[float], *, second_scale: bool
) -> None:
    low, high = _limits(rows, always_in)
    axes.set_xlim(low, high)
    axes.set_ylim(-len(rows) + 0.5, 0.62)
    axes.set_yticks([])
    axes.locator_params(axis="x", nbins=6)
    axes.tick_params(axis="x", colors=_INK, length=3, width=0.8, top=second_scale, labeltop=second_scale)
    axes.set_xlabel(axis_label, color=_INK, fontsize=_FONT_POINTS)
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_INK)


def _limits(rows: Sequence[PlotRow], always_in: Sequence[float]) -> tuple[float, float]:
    values = list(always_in)
    values += [end for row in rows for mark in row.marks for end in (mark.point, *(mark.ends or ()))]
    values += [row.reference for row in rows if row.reference is not None]
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = 0.04 * (high - low) or 0.05 * abs(high) or 1.0
    return low - room, high + room


def _draw_lanes(axes: Axes, margins: Sequence[float], *, zero: bool) -> None:
    """Grid, margins and the line of no difference, interrupted where the labels stand."""
    low, high = axes.get_xlim()
    lanes = [(-row + _LANE[0], -row + _LANE[1]) for row in range(len(margins))]
    for tick in axes.get_xticks():
        if low <= tick <= high:
            _draw_upright(axes, float(tick), lanes, color=_FAINT, linewidth=0.7, zorder=0.4)
    for margin in sorted({m for m in margins if m}):
        wide = [lane for lane, m in zip(lanes, margins, strict=True) if m == margin]
        for bottom, top in wide:
            axes.fill_between([-margin, margin], bottom, top, facecolor=_BAND, linewidth=0, zorder=0.5)
        for end in (-margin, margin):
            _draw_upright(axes, end, wide, color=_INK, linewidth=0.8, linestyle=(0, (1, 2)), zorder=0.8)
    if zero:
        _draw_upright(axes, 0.0, lanes, color=_INK, linewidth=1.2, zorder=0.9)


def _draw_upright(axes: Axes, at: float, lanes: Sequence[tuple[float, float]], **style: Any) -> None:
    """One path of many strokes: a line of its own for each lane would cost ten times the bytes."""
    across = [x for _ in lanes for x in (at, at, math.nan)]
    up = [y for bottom, top in lanes for y in (bottom, top, math.nan)]
    axes.plot(across, up, **style)


def _draw_row(axes: Axes, y: float, row: PlotRow) -> None:
    beside = axes.get_yaxis_transform()
    axes.text(0.0, y + 0.16, row.label, transform=beside, color=_INK, va="bottom", ha="left", fontsize=_FONT_POINTS)
    axes.text(1.0, y + 0.16, row.value, transform=beside, color=_INK, va="bottom", ha="right", fontsize=_FONT_POINTS)
    if row.reference is not None:
        axes.plot([row.reference] * 2, [y - 0.2, y + 0.12], color=_INK, linewidth=1.2, linestyle=(0, (1.5, 1.5)))
    for mark in row.marks:
        at = y - mark.offset
        if mark.ends is not None:
            dash: Any = "solid" if mark.shape == "filled" else (0, (4, 2))
            axes.plot(mark.ends, [at, at], color=_MARK, linewidth=1.8, linestyle=dash, solid_capstyle="butt")
            axes.plot(mark.ends, [at, at], color=_MARK, linestyle="none", marker="|", markersize=7, markeredgewidth=1.4)
        axes.plot(
            [mark.point],
            [at],
            linestyle="none",
            marker=_MARKERS[mark.shape],
            markersize=6.5,
            markerfacecolor=_PAPER if mark.shape == "hollow" else _MARK,
            markeredgecolor=_MARK,
            markeredgewidth=1.6,
        )


def _inline_svg(figure: Figure, name: str) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Type": None, "Format": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    svg = re.sub(r' id="([^"]*)"', lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "", svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\1{name}-", svg)
    svg = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px; font-family: inherit", svg)
    for stand_in, css in _CSS.items():
        svg = svg.replace(stand_in, css)
    view_box = re.search(r'viewBox="[^"]*"', svg)
    assert view_box is not None
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {view_box.group()} aria-hidden="true" focusable="false">'
    svg = re.sub(r"<svg[^>]*>", head, svg, count=1)
    svg = svg.replace('xlink:href="', 'href="')
    return "\n".join(line.rstrip() for line in svg.splitlines())
