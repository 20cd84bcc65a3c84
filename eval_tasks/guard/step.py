"""The guard step: checks every benchmark of a run, quarantines what fails, records one alert per excursion."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import pyarrow.compute as pc

from eval_tasks.digests import digest_parts, short_id
from eval_tasks.errors import DataError
from eval_tasks.guard import contract, plausibility
from eval_tasks.guard.contract import Breach
from eval_tasks.raw_outputs import sample_lines, take_samples
from eval_tasks.records import Alert, BenchmarkVersion, Excursion, GuardReport, Measurement
from eval_tasks.records.engine import MOCK_MARK
from eval_tasks.scoring import metric_of
from eval_tasks.store import Store

# Breaches of these say that the rows are wrong, not one number: every metric of the benchmark is quarantined.
_WHOLE_BENCHMARK = frozenset(contract.CHECKS) | {
    "invalid_share",
    "constant_prediction",
    "all_ties",
    "empty_share",
    "truncated_share",
    "one_environment",
}


def guard(store: Store, *, run_id: str, now: str) -> GuardReport:
    """Check the rows and the numbers of a run. `now` is the alert's time, UTC, ISO 8601."""
    run = store.catalog.run(run_id)
    run.require_evaluation()
    measurements = store.catalog.measurements(run.run_id)
    by_benchmark: dict[str, list[Measurement]] = defaultdict(list)
    for measurement in measurements:
        by_benchmark[measurement.benchmark_id].append(measurement)
    excursions: list[Excursion] = []
    straddles = _environments(store, run_id)
    for benchmark_id in run.request.benchmark_ids:
        benchmark = store.catalog.benchmark_by_id(benchmark_id)
        if not by_benchmark[benchmark_id]:
            raise DataError(f"run {run_id} has no measurement of {benchmark.name!r}; aggregate it first")
        excursions += _excursions(store, run_id, benchmark, by_benchmark[benchmark_id], straddles)
    report = GuardReport(
        run_id=run_id, passed=not excursions, checks=_outcomes(excursions), excursions=tuple(excursions)
    )
    store.catalog.change_measurements(run_id, lambda stored: [_quarantined(m, excursions) for m in stored])
    store.catalog.save_guard(report)
    for excursion in excursions:
        alert = _alert(run_id, excursion, now)
        marked = replace(alert, title=f"{MOCK_MARK}: {alert.title}") if run.origin == "mock" else alert
        store.catalog.raise_alert(marked)
    return report


def _outcomes(excursions: Sequence[Excursion]) -> dict[str, str]:
    """Each check's outcome in words; one that failed names every benchmark and metric that it failed on."""
    failed: dict[str, list[str]] = defaultdict(list)
    for e in excursions:
        failed[e.check].append(f"failed on {e.benchmark} {e.metric}: {e.observed}, expected {e.expected}")
    names = (*contract.CHECKS, "one_environment", *plausibility.CHECKS)
    return {name: "; ".join(failed[name]) or "passed" for name in names}


def _excursions(
    store: Store, run_id: str, benchmark: BenchmarkVersion, measurements: list[Measurement], straddles: list[Breach]
) -> list[Excursion]:
    responses = store.responses.read(
        run_id,
        benchmark.benchmark_id,
        columns=["item_id", "status", "reason", "logprobs", "output", "output_truncated", "samples"],
    )
    primary = next(m for m in measurements if m.primary)
    scores = store.scores.read(run_id, benchmark.benchmark_id, primary.grader)
    primary_scores = scores.filter(pc.equal(scores["metric"], primary.metric))
    n_planned = primary.n_attempted
    n_missing = pc.sum(pc.equal(primary_scores["status"], "missing")).as_py() or 0
    found: list[tuple[str, Breach]] = [
        (primary.metric, breach) for breach in (*contract.check_rows(responses, n_planned, n_missing), *straddles)
    ]
    for m in measurements:
        unit = metric_of(benchmark, m.metric).unit
        found += [(m.metric, b) for b in contract.check_scores(scores, metric=m.metric, unit=unit, n_planned=n_planned)]
        found += [(m.metric, b) for b in plausibility.check_measurement(m, benchmark)]
    found += [(primary.metric, b) for b in plausibility.check_shape(responses, primary_scores, benchmark)]
    if not found:
        return []
    samples = take_samples(store, run_id, benchmark, primary.grader)
    return [
        Excursion(
            benchmark_id=benchmark.benchmark_id,
            benchmark=benchmark.name,
            metric=metric,
            check=breach.check,
            observed=breach.observed,
            expected=breach.expected,
            samples=samples,
        )
        for metric, breach in found
    ]


def _environments(store: Store, run_id: str) -> list[Breach]:
    """The breach of a run whose shards report several environments: none of its numbers has a fingerprint then."""
    fingerprints = {row.env_fingerprint for row in store.catalog.shards(run_id) if row.env_fingerprint}
    if len(fingerprints) < 2:
        return []
    names = ", ".join(sorted(fingerprint[:12] for fingerprint in fingerprints))
    return [Breach(check="one_environment", observed=f"{len(fingerprints)} ({names})", expected="one for all shards")]


def _quarantined(measurement: Measurement, excursions: list[Excursion]) -> Measurement:
    reasons = [
        f"{e.check}: {e.observed}, expected {e.expected}"
        for e in excursions
        if e.benchmark_id == measurement.benchmark_id
        and (e.metric == measurement.metric or e.check in _WHOLE_BENCHMARK)
    ]
    return replace(measurement, quarantined=bool(reasons), quarantine_reason="; ".join(reasons))


def _alert(run_id: str, excursion: Excursion, now: str) -> Alert:
    lines = [f"{excursion.check}: {excursion.observed}, expected {excursion.expected}", ""]
    lines += sample_lines(excursion.samples)
    return Alert(
        alert_id=short_id(digest_parts([run_id, excursion.benchmark_id, excursion.metric, excursion.check])),
        kind="excursion",
        title=f"{excursion.benchmark} {excursion.metric} quarantined in run {run_id[:12]}: {excursion.check}",
        body="\n".join(lines),
        run_id=run_id,
        created_at=now,
    )
