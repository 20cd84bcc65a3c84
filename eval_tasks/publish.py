"""Records of a run -> its report, as HTML and JSON blobs and a row of the catalog. Computes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from eval_tasks.digests import canonical_json
from eval_tasks.errors import DataError
from eval_tasks.loss_curves import loss_curve
from eval_tasks.records import (
    BenchmarkVersion,
    Comparison,
    ContractReport,
    GuardReport,
    LossCurve,
    PlannedResolution,
    Run,
    from_json,
)
from eval_tasks.records.diagnosis import Diagnosis
from eval_tasks.report import ReportView, report_html, report_json, terminal_text
from eval_tasks.resolution import run_resolution
from eval_tasks.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """Where the report is: blob digests, the HTML's URI, and the terminal rendering."""

    run_id: str
    html_blob: str
    html_uri: str
    json_blob: str
    terminal: str


def publish(
    store: Store, *, run_id: str, now: str, comparison_id: str | None = None, notes: str = "", width: int = 100
) -> Published:
    """Write the report of a closed run, with the comparison `comparison_id` when given. `notes` are a person's words.

    width: columns of the terminal's rendering.

    Raises DataError for a run that is not closed: an incomplete run is never published. Publishing again gives the same
    blobs, unless what the report says of the past has changed.
    """
    run = store.catalog.run(run_id)
    run.require_evaluation()
    if run.status != "closed":
        raise DataError(
            f"run {run_id} is {run.status}, not closed ({run.reason or 'no reason recorded'}): not published"
        )
    view = build_view(store, run_id=run_id, comparison_id=comparison_id, notes=notes)
    html_blob = store.blobs.put(report_html(view).encode("utf-8"))
    json_blob = store.blobs.put(canonical_json(report_json(view)))
    store.catalog.save_report(run_id, html_blob, "html", now)
    store.catalog.save_report(run_id, json_blob, "json", now)
    return Published(
        run_id=run_id,
        html_blob=html_blob,
        html_uri=store.blobs.uri(html_blob),
        json_blob=json_blob,
        terminal=terminal_text(view, width),
    )


def build_view(store: Store, *, run_id: str, comparison_id: str | None = None, notes: str = "") -> ReportView:
    """Everything a report of `run_id` shows, from the catalog."""
    catalog = store.catalog
    run = catalog.run(run_id)
    comparison: Comparison | None = catalog.comparison(comparison_id) if comparison_id else None
    baseline = catalog.run(comparison.run_b) if comparison else None
    benchmarks = tuple(catalog.benchmark_by_id(benchmark_id) for benchmark_id in run.request.benchmark_ids)
    health, guarded = catalog.health(run_id), catalog.guard(run_id)
    return ReportView(
        run=run,
        measurements=tuple(catalog.measurements(run_id)),
        benchmarks=benchmarks,
        guard=guarded,
        contract=_contract(store, guarded),
        resolution=() if comparison else tuple(_resolution(store, run, benchmarks)),
        environment=catalog.environment(run.env_fingerprint) if run.env_fingerprint else None,
        shard_seconds={row.shard: row.seconds for row in catalog.shards(run_id)},
        comparison=comparison,
        baseline=baseline,
        baseline_measurements=tuple(catalog.measurements(baseline.run_id)) if baseline else (),
        notes=(notes,) if notes else (),
        diagnoses=_diagnoses(store, comparison) if comparison else (),
        health=health,
        selection=catalog.selection(run_id),
        suspect=tuple(reason for arm in (run, baseline) if arm is not None for reason in suspicions(store, arm)),
        curves=_curves(store, run, benchmarks) if health is not None else (),
    )


def _resolution(store: Store, run: Run, benchmarks: tuple[BenchmarkVersion, ...]) -> list[PlannedResolution]:
    """What a comparison of the run would find, by past ones; a report with a comparison has its own."""
    n = {m.benchmark_id: m.n for m in store.catalog.measurements(run.run_id) if m.primary}
    return run_resolution(store, run, [(b, n.get(b.benchmark_id, 0)) for b in benchmarks])


def _contract(store: Store, guarded: GuardReport | None) -> ContractReport | None:
    """The data contract as guard kept it; None for a report of an earlier release."""
    if guarded is None or not guarded.contract_blob:
        return None
    return from_json(ContractReport, store.blobs.get_json(guarded.contract_blob))


def suspicions(store: Store, run: Run) -> tuple[str, ...]:
    """Why the rows of a run are in doubt, one sentence for each block; none where nothing is."""
    return tuple(
        f"run {run.run_id[:12]}: block {block.block_id} on its environment {run.environment}: {block.reason}; "
        + (f"{block.explained_by}: {block.explanation}" if block.explained_at else "nobody has explained it yet")
        for block in store.catalog.suspicions(run)
    )


def _diagnoses(store: Store, comparison: Comparison) -> tuple[Diagnosis, ...]:
    """Where the two runs disagree, as kept with the comparison; none where nobody asked."""
    if not comparison.diagnoses_blob:
        return ()
    return tuple(from_json(Diagnosis, value) for value in store.blobs.get_json(comparison.diagnoses_blob))


def _curves(store: Store, run: Run, benchmarks: tuple[BenchmarkVersion, ...]) -> tuple[LossCurve, ...]:
    """The held-out losses of the run's training run up to its step."""
    return tuple(
        loss_curve(store, run.training_run, b, tier=run.tier, suite=run.request.suite, up_to_step=run.step)
        for b in benchmarks
        if b.kind == "loss"
    )


def comparison_view(store: Store | None, comparison: Comparison) -> ReportView:
    """A comparison alone; with a store, beside the scores of its two runs."""
    if store is None:
        return ReportView(comparison=comparison)
    return build_view(store, run_id=comparison.run_a, comparison_id=comparison.comparison_id)
