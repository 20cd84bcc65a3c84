"""Records in, tables of text out, as the HTML page shows them. Knows no markup."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from eval_tasks.records import Comparison, ContractReport, ImportedRows, Measurement, PairedTest
from eval_tasks.report import sentences
from eval_tasks.report.abilities import ability_cell, difference_cell
from eval_tasks.report.numbers import (
    ABSENT,
    amount,
    change,
    change_interval,
    count,
    duration,
    interval,
    probability,
    share,
    unit_name,
)
from eval_tasks.report.resolution import paired_mde
from eval_tasks.report.view import ReportView


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A heading; numbers are set right in a fixed-width figure style, digests in a type that tells 0 from O."""

    heading: str
    style: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A captioned table; the first cell of a row is its heading. `marked` holds the indices of rows that stand out."""

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    marked: frozenset[int] = frozenset()


def _columns(*headings: str, numbers: str = "", codes: str = "") -> tuple[Column, ...]:
    styles = dict.fromkeys(numbers.split(","), "number") | dict.fromkeys(codes.split(","), "code")
    return tuple(Column(heading=heading, style=styles.get(heading, "")) for heading in headings)


def scorecard(measurements: tuple[Measurement, ...], caption: str, name: str = "scores") -> Table:
    """One row for each benchmark and metric; a column of abilities where any was measured."""
    abilities = any(m.ability is not None for m in measurements)
    return Table(
        name=name,
        caption=caption,
        columns=_columns(
            "Benchmark",
            "Metric",
            "Score",
            "95 % interval",
            *(["Ability"] if abilities else []),
            "n",
            "Clean companion",
            "Items",
            numbers="Score,95 % interval,n",
        ),
        rows=tuple(
            (
                f"{m.benchmark} {m.version}",
                sentences.score_name(m) + (" · primary" if m.primary else ""),
                amount(m.score, m.unit),
                interval(m.ci95, m.unit),
                *([ability_cell(m.ability)] if abilities else []),
                count(m.n) if m.n == m.n_attempted else f"{count(m.n)} of {count(m.n_attempted)}",
                sentences.companion(m),
                "; ".join(part for part in (_quarantine(m), sentences.statuses(m)) if part) or "all ok",
            )
            for m in measurements
        ),
        marked=frozenset(i for i, m in enumerate(measurements) if m.quarantined),
    )


def _quarantine(m: Measurement) -> str:
    return f"QUARANTINED: {m.quarantine_reason}" if m.quarantined else ""


def companions(measurements: tuple[Measurement, ...]) -> Table:
    """The decontaminated companion of each number, or that it was never checked."""
    rows = []
    for m in measurements:
        clean = m.companion
        if clean is None:
            rows.append((f"{m.benchmark} {m.version}", m.metric, *[ABSENT] * 6, m.contamination))
            continue
        se = f" ± {amount(clean.difference_se, m.unit)}" if clean.difference_se is not None else ""
        rows.append(
            (
                f"{m.benchmark} {m.version}",
                m.metric,
                amount(clean.score, m.unit),
                interval(clean.ci95, m.unit),
                count(clean.n),
                f"{count(clean.n_contaminated)} ({share(clean.n_contaminated, clean.n + clean.n_contaminated)})",
                count(clean.n_not_checkable),
                change(clean.difference, m.unit) + se,
                m.contamination,
            )
        )
    headings = ("Clean score", "95 % interval", "Clean n", "Flagged", "Not checkable", "Full − clean ± SE")
    return Table(
        name="companions",
        caption="The same scores on the items not found in the training corpora",
        columns=_columns("Benchmark", "Metric", *headings, "Check", numbers=",".join(headings)),
        rows=tuple(rows),
    )


def tests(comparison: Comparison) -> Table:
    """The Benjamini-Hochberg table: every benchmark of the comparison, tested or not."""
    shown = sentences.shown_tests(comparison)
    headings = ("A", "B", "Δ = A − B", "95 % interval", "p", "q", "b / c", "Pairs", "MDE")
    abilities = ["Δ ability"] if comparison.abilities else []
    return Table(
        name="tests",
        caption="Paired comparison by benchmark, p adjusted by Benjamini-Hochberg (q)",
        columns=_columns("Benchmark", *headings, *abilities, "Verdict", numbers=",".join(headings)),
        rows=tuple(
            (*row[:-1], *([difference_cell(comparison, test)] if abilities else []), row[-1])
            for test, row in ((test, _test_row(test)) for test in shown)
        ),
        marked=frozenset(i for i, test in enumerate(shown) if test.not_tested),
    )


def _test_row(test: PairedTest) -> tuple[str, ...]:
    return (
        _test_name(test),
        amount(test.score_a, test.unit),
        amount(test.score_b, test.unit),
        change(test.delta, test.unit),
        change_interval(test.ci95, test.unit),
        probability(test.p),
        probability(test.q),
        ABSENT if test.b is None else f"{count(test.b)} / {count(test.c)}",
        count(test.n_pairs)
        if test.n_pairs == test.n_attempted
        else f"{count(test.n_pairs)} of {count(test.n_attempted)}",
        amount(test.mde, test.unit),
        sentences.call(test),
    )


def _test_name(test: PairedTest) -> str:
    unit = "" if test.unit in ("fraction", test.metric.replace("_", " ")) else f" ({unit_name(test.unit)})"
    return f"{test.benchmark} · {test.metric}{unit}"


def methods(comparison: Comparison) -> Table:
    """How each benchmark was tested, and what has to be known of it."""
    return Table(
        name="methods",
        caption="How each was tested",
        columns=_columns("Benchmark", "Test and interval", "Arms", "To be known"),
        rows=tuple(_method_row(test) for test in sentences.shown_tests(comparison)),
    )


def _method_row(test: PairedTest) -> tuple[str, ...]:
    method = test.method if test.p_exact is None else f"{test.method}, exact p {probability(test.p_exact)}"
    return (
        _test_name(test),
        "; ".join(part for part in (method, _fcr(test)) if part),
        f"{test.compatibility}, scored by {test.grader}" if test.grader else test.compatibility,
        "; ".join(test.notes) or ABSENT,
    )


def _fcr(test: PairedTest) -> str:
    """The interval that allows for having been picked out of many."""
    return "" if test.ci_fcr is None else f"FCR-adjusted interval {change_interval(test.ci_fcr, test.unit)}"


def clean_tests(comparison: Comparison) -> Table | None:
    """The comparison on clean items alone; None when no benchmark was ever checked."""
    checked = [t for t in comparison.tests if t.companion_delta is not None]
    if not checked:
        return None
    return Table(
        name="clean-tests",
        caption="The comparison on clean items only",
        columns=_columns("Benchmark", "Δ clean", "95 % interval", "p", "Check", numbers="Δ clean,95 % interval,p"),
        rows=tuple(
            (
                f"{t.benchmark} · {t.metric}",
                change(t.companion_delta, t.unit),
                change_interval(t.companion_ci95, t.unit),
                probability(t.companion_p),
                t.contamination,
            )
            for t in checked
        ),
    )


def resolution(view: ReportView) -> Table:
    """What difference could have been found: paired, in this comparison or by past ones, and unpaired."""
    needed = {(t.benchmark, t.metric): count(t.n_needed) for t in (view.comparison.tests if view.comparison else ())}
    rows = []
    for m in view.measurements:
        paired, basis = paired_mde(m, view)
        rows.append(
            (
                f"{m.benchmark} {m.version}",
                m.metric,
                amount(m.se, m.unit),
                amount(sentences.resolvable(m), m.unit),
                amount(paired, m.unit),
                needed.get((m.benchmark, m.metric), ABSENT),
                basis or ABSENT,
            )
        )
    numbers = ("Standard error", "Unpaired MDE", "Paired MDE", "Items for the margin")
    return Table(
        name="resolution",
        caption="Smallest true difference that would be found with 80 % power (alpha 0.05)",
        columns=_columns("Benchmark", "Metric", *numbers, "Paired by", numbers=",".join(numbers)),
        rows=tuple(rows),
    )


def pairs(name: str, caption: str, values: Mapping[str, str], heading: str, style: str = "") -> Table:
    """Two columns: a name and its value."""
    return Table(
        name=name,
        caption=caption,
        columns=(Column(heading=heading), Column(heading="Value", style=style)),
        rows=tuple((key, value) for key, value in values.items()),
    )


def contract(report: ContractReport) -> Table:
    """The data contract, clause by clause; broken ones are marked."""
    return Table(
        name="contract",
        caption=f"Data contract, in the order of checking, by {report.by}",
        columns=_columns("Rows", "Check", "Observed", "Expected", "Expectation", codes="Expectation"),
        rows=tuple(
            (f"{r.benchmark or 'run'}: {r.part}", r.check, r.observed, r.expected, r.expectation)
            for r in report.results
        ),
        marked=frozenset(n for n, r in enumerate(report.results) if not r.passed),
    )


def identity(view: ReportView) -> Table:
    """Every id and digest that names what was run."""
    run, comparison = view.run, view.comparison
    values: dict[str, str] = {}
    if run is not None:
        values |= {
            "Run": run.run_id,
            "request_digest": run.request.request_digest,
            "config_digest": run.config_digest or "not known yet: no shard has reported",
            "env_fingerprint": run.env_fingerprint or "not known yet: no shard has reported",
            "checkpoint_id": run.request.checkpoint_id,
            "Checkpoint lay at": run.checkpoint_uri or ABSENT,
            "suite_id": run.request.suite_id,
            "harness_version": run.request.harness_version,
        }
        values |= {f"Grader {i + 1}": grader for i, grader in enumerate(run.request.graders)}
    if comparison is not None:
        values |= {"Comparison": comparison.comparison_id, "Run A": comparison.run_a, "Run B": comparison.run_b}
        if comparison.rule is not None:
            values["Decision rule"] = comparison.rule.rule_id
    if view.baseline is not None and view.baseline.config_digest:
        values["config_digest of B"] = view.baseline.config_digest
    if view.item_report is not None:
        k = view.item_report.calibration
        values |= {f"Calibration {k.reference}": k.calibration_id, "Benchmark": k.benchmark_id, "Items": k.items_blob}
    values |= {f"Benchmark {b.name} {b.version}": b.benchmark_id for b in view.benchmarks}
    return pairs("identity", "Ids and digests (blake3)", values, "What", "code")


def how_run(view: ReportView) -> Table | None:
    """Suite, times, engine configuration; None without a run."""
    run = view.run
    if run is None:
        return None
    seconds = view.shard_seconds
    values: dict[str, str] = {
        "Suite": f"{run.request.suite} {run.request.suite_version} ({run.tier})",
        "Environment": run.environment,
        "Status": run.status + (f": {run.reason}" if run.reason else ""),
        "Created (UTC)": run.created_at,
        "Closed (UTC)": run.closed_at or ABSENT,
        "Repeat": str(run.repeat),
        "Rows came from": run.origin,
        "Shards": f"{len(seconds)}, {duration(sum(seconds.values()))} of compute" if seconds else ABSENT,
    }
    if isinstance(run.request.engine, ImportedRows):
        imported = run.request.engine
        values |= {f"Imported: {key}": _setting(value) for key, value in asdict(imported).items() if key != "rows"}
        return pairs("how", "Where its rows came from", values, "Setting")
    values |= {f"Engine: {key}": _setting(value) for key, value in asdict(run.request.engine).items()}
    values |= {f"Tuning (moves no bit): {key}": _setting(value) for key, value in asdict(run.tuning).items()}
    return pairs("how", "How it was run", values, "Setting")


def _setting(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return "the model's own" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
