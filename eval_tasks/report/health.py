"""A look at a training run's health in, its tables and loss curves out. Knows no markup."""

from __future__ import annotations

from collections.abc import Sequence

from eval_tasks.records import CurvePoint, HealthFinding, HealthLook, LossCurve, MeasuredNoise
from eval_tasks.report.figures import Figure
from eval_tasks.report.health_sentences import NAMES
from eval_tasks.report.numbers import ABSENT, amount, change, count, deviation, probability, unit_name
from eval_tasks.report.plots import CurvePart, curve_figure
from eval_tasks.report.tables import Column, Table
from eval_tasks.report.text import one_line

_MOST_POINTS = 300
_MOST_CURVES = 12
_LONGEST_NAME = 60


def findings_table(look: HealthLook) -> Table:
    """Every test of the look; alarms stand out."""
    headings = ("Against step", "Observed", "Let pass", "Seen 4 times in 5", "p", "May spend")
    return Table(
        name="health-tests",
        caption="What was tested at this look, each against the earlier look that stood out most",
        columns=(
            Column(heading="Test"),
            *(Column(heading=h, style="number") for h in headings),
            Column(heading="Found"),
        ),
        rows=tuple(_row(finding) for finding in look.findings),
        marked=frozenset(i for i, finding in enumerate(look.findings) if finding.alarm),
    )


def _row(finding: HealthFinding) -> tuple[str, ...]:
    where = " · ".join(part for part in (finding.benchmark, finding.subject) if part)
    unit = "" if finding.unit == "fraction" else f" ({unit_name(finding.unit)})"
    name = one_line(f"{NAMES[finding.detection]}: {where}", _LONGEST_NAME) + unit
    if finding.not_tested:
        return (name, *[ABSENT] * 6, f"not tested: {finding.not_tested}")
    since = f", since step {count(finding.since_step)}" if finding.since_step is not None else ""
    shown = amount if finding.detection == "collapse" else change
    return (
        name,
        count(finding.against_step),
        shown(finding.observed, finding.unit),
        shown(finding.threshold, finding.unit),
        shown(finding.detectable, finding.unit),
        probability(finding.p),
        ABSENT if finding.alpha is None else f"{finding.alpha:.1e}",
        f"ALARM{since}" if finding.alarm else "no alarm",
    )


def noise_table(noise: Sequence[MeasuredNoise]) -> Table:
    """Checkpoint-to-checkpoint noise beside the seed prior: two different things."""
    return Table(
        name="checkpoint-noise",
        caption="How far checkpoints wobble around their trend, beside what another training seed does (both SD)",
        columns=(
            Column(heading="Benchmark"),
            Column(heading="Checkpoint noise", style="number"),
            Column(heading="Measured over"),
            Column(heading="Seed prior", style="number"),
            Column(heading="From"),
        ),
        rows=tuple(
            (
                f"{n.benchmark} · {n.metric}",
                deviation(n.sd, n.unit),
                f"{n.n_looks} looks up to step {count(n.last_step)}"
                if n.sd is not None
                else f"not yet: {n.n_looks} earlier looks, 8 are needed",
                deviation(n.seed_sd, n.unit),
                n.seed_study or "no seed study has this benchmark",
            )
            for n in noise
        ),
    )


def curve_figures(curves: Sequence[LossCurve]) -> list[Figure]:
    """A figure for each held-out loss with two points or more."""
    drawn = [curve for curve in curves if len(curve.points) > 1][:_MOST_CURVES]
    return [_figure(curve, number) for number, curve in enumerate(drawn, start=1)]


def _figure(curve: LossCurve, number: int) -> Figure:
    points = _thinned(curve)
    first, last = curve.points[0], curve.points[-1]
    unit = unit_name(curve.unit)
    ends = f"{amount(first.score, curve.unit)} at step {count(first.step)}, {amount(last.score, curve.unit)} at step "
    fewer = f" Drawn: {len(points)} of {len(curve.points)} steps." if len(points) < len(curve.points) else ""
    return Figure(
        name=f"loss-{number}",
        svg=curve_figure(
            [CurvePart(at=p.step, point=p.score, ends=p.ci95) for p in points],
            name=f"loss-{number}",
            axis_label=unit,
            across_label="step",
        ),
        alternative=f"Held-out loss {curve.benchmark} {curve.metric} in {unit}: {ends}{count(last.step)}.",
        caption=f"{one_line(curve.benchmark, _LONGEST_NAME)} · {curve.metric}: held-out loss over steps, {ends}"
        f"{count(last.step)}. The band is each loss's own 95 % interval; every step reads the same documents, so two "
        f"steps differ more surely than their bands suggest.{fewer}",
    )


def _thinned(curve: LossCurve) -> list[CurvePoint]:
    """At most about 300 points, evenly, the last one always."""
    stride = -(-len(curve.points) // _MOST_POINTS)
    kept = list(curve.points[::-1][::stride])
    return kept[::-1]
