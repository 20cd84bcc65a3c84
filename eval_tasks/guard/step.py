"""The guard step: checks every benchmark of a run, quarantines what fails, records one alert for each benchmark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import pyarrow.compute as pc

from eval_tasks.digests import digest_parts, short_id
from eval_tasks.errors import DataError
from eval_tasks.guard import contract, history, plausibility
from eval_tasks.guard.contract import Breach, Part, Validator
from eval_tasks.raw_outputs import sample_lines, take_samples
from eval_tasks.records import (
    Alert,
    BenchmarkVersion,
    ContractResult,
    Excursion,
    GuardReport,
    Measurement,
    Run,
    to_json,
)
from eval_tasks.records.engine import MOCK_MARK
from eval_tasks.scoring import metric_of
from eval_tasks.store import Store

CHECKS = (*contract.CHECKS, *plausibility.CHECKS, *history.CHECKS)

# Breaches of these are about one number; all others say that the rows are wrong: every metric is quarantined then.
_ONE_METRIC = frozenset({"plausible_range", "history_range"})


def guard(store: Store, *, run_id: str, now: str, validator: Validator = "auto") -> GuardReport:
    """Check the rows and the numbers of a run. `now` is the alert's time, UTC, ISO 8601.

    `validator`: who checks the data contract; ``auto`` is Great Expectations where it is installed.
    """
    run = store.catalog.run(run_id)
    run.require_evaluation()
    known = store.catalog.guard(run.run_id)
    if known is not None and store.responses.thinned_at(run.run_id):
        return known  # retention took the outputs out: what was found of them stands
    by_benchmark: dict[str, list[Measurement]] = defaultdict(list)
    for measurement in store.catalog.measurements(run.run_id):
        by_benchmark[measurement.benchmark_id].append(measurement)
    benchmarks = [store.catalog.benchmark_by_id(benchmark_id) for benchmark_id in run.request.benchmark_ids]
    for benchmark in benchmarks:
        if not by_benchmark[benchmark.benchmark_id]:
            raise DataError(f"run {run_id} has no measurement of {benchmark.name!r}; aggregate it first")
    fingerprints = [row.env_fingerprint for row in store.catalog.shards(run_id) if row.env_fingerprint]
    whole = contract.validate([contract.shards_part(fingerprints)], validator)
    results: list[ContractResult] = []
    excursions: list[Excursion] = []
    for benchmark in benchmarks:
        measurements = by_benchmark[benchmark.benchmark_id]
        parts = _parts(store, run_id, benchmark, measurements)
        checked = contract.validate(parts, validator)
        results += checked.results
        of_metric = {part.name: part.metric for part in parts}
        broken = [
            (of_metric.get(r.part, ""), Breach(check=r.check, observed=r.observed, expected=r.expected))
            for r in (*checked.results, *whole.results)
            if not r.passed
        ]
        excursions += _excursions(store, run, benchmark, measurements, broken)
    report = GuardReport(
        run_id=run_id,
        passed=not excursions,
        checks=_outcomes(excursions),
        excursions=tuple(excursions),
        contract_blob=store.blobs.put_json(to_json(replace(whole, results=(*results, *whole.results)))),
    )
    store.catalog.change_measurements(run_id, lambda stored: [_quarantined(m, excursions) for m in stored])
    store.catalog.save_guard(report)
    for benchmark in benchmarks:
        own = [e for e in excursions if e.benchmark_id == benchmark.benchmark_id]
        if own:
            store.catalog.raise_alert(_alert(run, benchmark, own, now))
    return report


def _outcomes(excursions: Sequence[Excursion]) -> dict[str, str]:
    """Each check's outcome in words; one that failed names every benchmark and metric that it failed on."""
    failed: dict[str, list[str]] = defaultdict(list)
    for e in excursions:
        failed[e.check].append(f"failed on {e.benchmark} {e.metric}: {e.observed}, expected {e.expected}")
    return {name: "; ".join(failed[name]) or "passed" for name in CHECKS}


def _parts(store: Store, run_id: str, benchmark: BenchmarkVersion, measurements: Sequence[Measurement]) -> list[Part]:
    """What the data contract is about: the rows of a benchmark, then the scores of each metric."""
    primary = next(m for m in measurements if m.primary)
    n_planned = primary.n_attempted
    scores = store.scores.read(
        run_id, benchmark.benchmark_id, primary.grader, columns=["item_id", "metric", "value", "status"]
    )
    missing = pc.and_(pc.equal(scores["metric"], primary.metric), pc.equal(scores["status"], "missing"))
    n_missing = pc.sum(missing).as_py() or 0
    responses = store.responses.read(
        run_id, benchmark.benchmark_id, columns=["item_id", "status", "reason", "logprobs"]
    )
    rows = contract.rows_part(benchmark.name, responses, n_planned, n_missing)
    return [
        rows,
        *(
            contract.scores_part(
                benchmark.name,
                scores,
                metric=m.metric,
                unit=metric_of(benchmark, m.metric).unit,
                n_planned=n_planned,
            )
            for m in measurements
        ),
    ]


def _excursions(
    store: Store,
    run: Run,
    benchmark: BenchmarkVersion,
    measurements: Sequence[Measurement],
    broken: Sequence[tuple[str, Breach]],
) -> list[Excursion]:
    """What the contract found (by metric, '' for all of the benchmark), and what is implausible."""
    primary = next(m for m in measurements if m.primary)
    found = [(metric or primary.metric, breach) for metric, breach in broken]
    for m in measurements:
        found += [(m.metric, breach) for breach in plausibility.check_measurement(m, benchmark)]
        earlier = history.earlier_numbers(store, run, benchmark, m.metric, m.grader)
        found += [(m.metric, breach) for breach in history.check_history(m, benchmark, earlier)]
    if columns := plausibility.shape_columns(benchmark):
        extracted = store.scores.read(
            run.run_id, benchmark.benchmark_id, primary.grader, metric=primary.metric, columns=["extracted"]
        )["extracted"]
        parts = store.responses.parts(run.run_id, benchmark.benchmark_id, columns)
        found += [(primary.metric, b) for b in plausibility.check_shape(parts, extracted, benchmark)]
    if not found:
        return []
    samples = take_samples(store, run.run_id, benchmark, primary.grader)
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


def _quarantined(measurement: Measurement, excursions: list[Excursion]) -> Measurement:
    reasons = [
        f"{e.check}: {e.observed}, expected {e.expected}"
        for e in excursions
        if e.benchmark_id == measurement.benchmark_id and (e.metric == measurement.metric or e.check not in _ONE_METRIC)
    ]
    return replace(measurement, quarantined=bool(reasons), quarantine_reason="; ".join(reasons))


def _alert(run: Run, benchmark: BenchmarkVersion, excursions: Sequence[Excursion], now: str) -> Alert:
    """One for a benchmark of a run, whatever it broke: the message is about its five outputs."""
    broken = [f"{e.metric} {e.check}: {e.observed}, expected {e.expected}" for e in excursions]
    metrics = list(dict.fromkeys(e.metric for e in excursions))
    checks = list(dict.fromkeys(e.check for e in excursions))
    title = f"{benchmark.name} {', '.join(metrics)} quarantined in run {run.run_id[:12]}: {', '.join(checks)}"
    of = f"{run.training_run} step {run.step:,}" if run.training_run else run.request.suite
    lines = [
        *broken,
        "",
        f"run {run.run_id}: {of}, {run.tier} tier, suite {run.request.suite}@{run.request.suite_version}",
        f"benchmark {benchmark.name}@{benchmark.version}",
        "",
        *sample_lines(excursions[0].samples),
    ]
    subject = [run.run_id, benchmark.benchmark_id, *(f"{e.metric} {e.check}" for e in excursions)]
    return Alert(
        alert_id=short_id(digest_parts(subject)),
        kind="excursion",
        title=f"{MOCK_MARK}: {title}" if run.origin == "mock" else title,
        body="\n".join(lines),
        run_id=run.run_id,
        training_run=run.training_run or None,
        created_at=now,
    )
