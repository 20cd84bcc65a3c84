"""K runs of one recipe with their own seeds, or a file of published figures -> a seed study, kept in the catalog."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from eval_tasks.compare.files import file_metric, read_scores
from eval_tasks.compare.graders import common_grader
from eval_tasks.compare.runs import shared_benchmarks
from eval_tasks.compare.scale import SAME_FACTOR, scales_of
from eval_tasks.compare.seed_arms import refuse_doubled
from eval_tasks.compare.several_runs import aligned, mean_rows
from eval_tasks.errors import DataError, NotComparableError, UserError
from eval_tasks.records import BenchmarkVersion, Run, Scale, SeedStudy, StudiedBenchmark
from eval_tasks.records.seed_study import FEWEST_RUNS
from eval_tasks.registry.seed_study_spec import SeedStudySpec
from eval_tasks.scoring import metric_of, metrics_of
from eval_tasks.stats.item_scores import MetricTraits, metric_rows
from eval_tasks.stats.recipes import spread

if TYPE_CHECKING:
    from eval_tasks.store import Store

_COLUMNS = ("metric", "item_id", "value", "weight", "status", "cluster")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStudy:
    """The study as it is kept, and what of its runs was left out, with the reason."""

    study: SeedStudy
    left_out: tuple[str, ...] = ()


def record_study(
    store: Store, name: str, run_ids: Sequence[str], *, now: str, tokens: int | None = None
) -> RecordedStudy:
    """Measure how far runs of one recipe lie apart, on every benchmark and metric that all of them have.

    `now` is UTC, ISO 8601; `tokens` that each was trained on, which no checkpoint says. Sizes and steps are those of
    the catalog. The same runs again give the study that stands.

    Raises UserError for fewer than three runs, one that is not closed, made-up rows, and runs that are no seeds of one
    recipe at one point of its training; NotComparableError for other instruments, items or graders among them.
    """
    runs = [store.catalog.run(run_id) for run_id in run_ids]
    _check(runs)
    scale = _scale(store, runs, tokens)
    measured: list[StudiedBenchmark] = []
    left_out: list[str] = []
    shut = {
        (m.benchmark_id, m.metric): f"quarantined in run {run.run_id[:12]}: {m.quarantine_reason}"
        for run in runs
        for m in store.catalog.measurements(run.run_id)
        if m.quarantined
    }
    for version in (of_one[0] for of_one in shared_benchmarks(store, [runs]).values()):
        tables = _tables(store, runs, version)
        for metric in metrics_of(version.scorer.name, version.sampling):
            why = shut.get((version.benchmark_id, metric), "")
            found = None
            if not why:
                rows = [metric_rows(table, metric) for table in tables]
                found, why = _measured(version.name, metric, rows, metric_of(version, metric), version)
            if found is not None:
                measured.append(found)
            elif why:
                left_out.append(f"{version.name} {metric}: {why}")
    if not measured:
        raise UserError(f"seed study {name!r} has nothing to hold: {'; '.join(left_out) or 'no metric was scored'}")
    study = SeedStudy(
        name=name,
        origin="runs",
        source="runs " + ", ".join(_label(run) for run in runs),
        scale=scale,
        benchmarks=tuple(measured),
        measured_at=max(run.created_at for run in runs)[:10],
        recorded_at=now,
        runs=tuple(run.run_id for run in runs),
    )
    return RecordedStudy(study=store.catalog.save_seed_study(study), left_out=tuple(left_out))


def import_study(store: Store, spec: SeedStudySpec, folder: Path, *, now: str) -> SeedStudy:
    """Keep a study that was published, or measure one from files of item scores, which lie in `folder`.

    Raises UserError naming file and line for scores that cannot be read, NotComparableError for files without a common
    item.
    """
    return store.catalog.save_seed_study(spec.record(now, _of_files(spec, folder) if spec.score_files else ()))


def _check(runs: Sequence[Run]) -> None:
    if len(runs) < FEWEST_RUNS:
        raise UserError(
            f"{len(runs)} run{'' if len(runs) == 1 else 's'}; a study has {FEWEST_RUNS} at least: fewer say too little "
            "of how far training seeds lie apart"
        )
    for run in runs:
        run.require_evaluation()
        if run.status != "closed":
            raise UserError(f"run {run.run_id[:12]} is {run.status}, not closed; a study takes whole runs")
        if run.origin == "mock":
            raise UserError(f"run {run.run_id[:12]} is of a mock engine: made-up answers say nothing of training seeds")
    refuse_doubled("the study", "run", [run.run_id for run in runs])
    refuse_doubled("the study", "checkpoint", [run.request.checkpoint_id for run in runs if run.request.checkpoint_id])
    refuse_doubled("the study", "training run", [run.training_run for run in runs if run.training_run])
    steps = sorted({run.step for run in runs})
    if len(steps) > 1:
        raise UserError(
            f"the runs are of steps {', '.join(map(str, steps))}; a study is of one recipe at one point of its training"
        )


def _scale(store: Store, runs: Sequence[Run], tokens: int | None) -> Scale:
    sizes = {scale.parameters for scale in scales_of(store, runs)}
    known = sorted(size for size in sizes if size is not None)
    if known and known[-1] > SAME_FACTOR * known[0]:
        raise UserError(f"the runs' models have {known[0]:,} to {known[-1]:,} parameters; a study is of one recipe")
    parameters = known[0] if known and None not in sizes else None
    return Scale(parameters=parameters, tokens=tokens, step=runs[0].step or None)


def _tables(store: Store, runs: Sequence[Run], version: BenchmarkVersion) -> list[pa.Table]:
    grader = common_grader(store, [(run, version) for run in runs])
    return [store.scores.read(run.run_id, version.benchmark_id, grader=grader, columns=_COLUMNS) for run in runs]


def _measured(
    benchmark: str, metric: str, tables: Sequence[pa.Table], info: MetricTraits, version: BenchmarkVersion | None
) -> tuple[StudiedBenchmark | None, str]:
    """One metric over the runs; else why it has no spread ('' where nobody scored it)."""
    if not any(table.num_rows for table in tables):
        return None, ""
    mean_rows(benchmark, "the study", tables)
    clustered = version is not None and version.cluster_key is not None
    if version is None:
        clustered = any(table["cluster"].null_count < table.num_rows for table in tables)
    found = aligned(tables, info, clustered=clustered)
    if found is None:
        return None, "fewer than two items have a score in every run"
    apart = spread(found.values, found.weights, found.clusters)
    plain = found.weights is None and found.clusters is None
    return (
        StudiedBenchmark(
            benchmark=benchmark,
            metric=metric,
            n=found.values.shape[1],
            n_seeds=apart.n_runs,
            s2_raw=apart.raw,
            psi_seed=apart.psi,
            version="" if version is None else version.version,
            unit=info.unit,
            flips=None if plain else apart.flips,
            scores=found.scores(found.values),
        ),
        "",
    )


def _label(run: Run) -> str:
    return f"{run.training_run} step {run.step}" if run.training_run else run.run_id[:12]


def _of_files(spec: SeedStudySpec, folder: Path) -> tuple[StudiedBenchmark, ...]:
    tables = [read_scores(folder / name) for name in spec.score_files]
    names = sorted(set.intersection(*(set(pc.unique(table["benchmark"]).to_pylist()) for table in tables)))
    if not names:
        raise NotComparableError(f"seed study {spec.name!r}: its score files have no benchmark in common")
    unknown = sorted(set(spec.versions) - set(names))
    if unknown:
        raise UserError(f"seed study {spec.name!r}: versions names {unknown[0]!r}, which is not in all score files")
    measured = []
    for name in names:
        rows = [table.filter(pc.equal(table["benchmark"], name)) for table in tables]
        try:
            found, why = _measured(name, spec.metric, rows, file_metric(rows), None)
        except DataError as error:
            raise UserError(f"seed study {spec.name!r}, {name}: {error}") from error
        if found is None:
            raise NotComparableError(f"seed study {spec.name!r}, {name}: {why}")
        measured.append(replace(found, version=spec.versions.get(name, "")))
    return tuple(measured)
