"""Measurements + contamination records -> measurements with their decontaminated companions.

Contamination is a side service: this step only reads what the catalog says was checked. A benchmark that was never
checked against the checkpoint's corpora says so in each of its numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from eval_tasks.contamination import NEVER_CHECKED, known_statuses, note
from eval_tasks.records import BenchmarkVersion, Companion, Measurement, Run
from eval_tasks.scoring import metric_of
from eval_tasks.stats.companion import companion_of
from eval_tasks.store import ContaminationCheck, Store

_COLUMNS = ["item_id", "metric", "value", "weight", "status", "cluster", "stratum"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContaminationReport:
    """Benchmarks that have a companion now, and those that were never checked, by name."""

    run_id: str
    checked: tuple[str, ...]
    never_checked: tuple[str, ...]


def join_contamination(store: Store, *, run_id: str) -> ContaminationReport:
    """Give every measurement of a run its companion, from the checks of its checkpoint's corpora.

    A checkpoint that names no corpora has none to be checked against: its numbers stay ``never checked``.
    """
    run = store.catalog.run(run_id)
    corpora = store.catalog.corpora_of(run.request.checkpoint_id)
    measurements = store.catalog.measurements(run_id)
    companions: dict[tuple[str, str], tuple[Companion, str]] = {}
    checked, never = [], []
    for benchmark_id in run.request.benchmark_ids:
        benchmark = store.catalog.benchmark_by_id(benchmark_id)
        statuses, checks = known_statuses(store, benchmark_id, corpora)
        if statuses is None:
            never.append(benchmark.name)
            continue
        checked.append(benchmark.name)
        own = [m for m in measurements if m.benchmark_id == benchmark_id]
        companions |= _companions(store, run, benchmark, own, statuses, checks)

    def joined(m: Measurement) -> Measurement:
        companion, sentence = companions.get((m.benchmark_id, m.metric), (None, NEVER_CHECKED))
        return replace(m, companion=companion, contamination=sentence)

    store.catalog.change_measurements(run_id, lambda stored: [joined(m) for m in stored])
    return ContaminationReport(run_id=run_id, checked=tuple(checked), never_checked=tuple(never))


def _companions(
    store: Store,
    run: Run,
    benchmark: BenchmarkVersion,
    measurements: Sequence[Measurement],
    statuses: Mapping[str, str],
    checks: Sequence[ContaminationCheck],
) -> dict[tuple[str, str], tuple[Companion, str]]:
    """(benchmark_id, metric) -> the companion, and the sentence on the check that it rests on."""
    found = {}
    for m in measurements:
        scores = store.scores.read(run.run_id, benchmark.benchmark_id, m.grader, m.metric, columns=_COLUMNS)
        companion = companion_of(
            scores,
            statuses,
            metric=m.metric,
            info=metric_of(benchmark, m.metric),
            clustered=benchmark.cluster_key is not None,
            stratified=benchmark.stratum_key is not None,
        )
        share = companion.n_contaminated / m.n_attempted if m.n_attempted else 0.0
        found[m.benchmark_id, m.metric] = companion, note(checks, share)
    return found
