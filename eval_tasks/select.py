"""Closed runs of many checkpoints -> the best on each benchmark, how much of that is luck, and a check on other items.

The same items and one scorer for all; each benchmark is a choice of its own, since there is no overall score. Knows no
engine and no guard beyond its quarantines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eval_tasks.errors import NotComparableError, UserError, did_you_mean
from eval_tasks.loss_curves import one_per_step
from eval_tasks.measured_noise import noise_of, noise_record
from eval_tasks.records import (
    BenchmarkSelection,
    BenchmarkVersion,
    Candidate,
    Confirmation,
    MeasuredNoise,
    Run,
    Selection,
)
from eval_tasks.scoring import metric_of
from eval_tasks.stats.influence import FloatArray, IntArray
from eval_tasks.stats.intervals import estimate
from eval_tasks.stats.item_scores import fraction_bounds, item_scores
from eval_tasks.stats.paired import paired_binary, paired_continuous
from eval_tasks.stats.selection import best_of_many, halves

if TYPE_CHECKING:
    from eval_tasks.store import Store

_COLUMNS = ("item_id", "value", "weight", "status", "cluster", "stratum")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """Scores of all runs on the items they share. values: (runs, items), as recorded."""

    item_ids: list[str]
    values: FloatArray
    weights: FloatArray | None
    clusters: IntArray | None
    strata: list[str | None]


def select(
    store: Store,
    run_ids: Sequence[str],
    *,
    benchmark: str | None = None,
    split: bool = False,
    against: str | None = None,
    alpha: float = 0.05,
) -> Selection:
    """Choose among runs, and keep the selection with the last of them.

    `split`: select on half of the items, and confirm on the others against the run `against`; None is the one of the
    highest step, or where that is selected the runner-up. Raises UserError for fewer than two runs or one named twice,
    NotComparableError when they share no benchmark.
    """
    runs = [store.catalog.run(run_id) for run_id in run_ids]
    if len({run.run_id for run in runs}) != len(runs):
        raise UserError("a run is named twice; each checkpoint stands once in a selection")
    if len(runs) < 2:
        raise UserError(f"{len(runs)} run to select from; a choice needs two")
    for run in runs:
        if run.status != "closed":
            raise UserError(f"run {run.run_id} is {run.status}, not closed: it cannot be selected")
    versions = _shared(store, runs, benchmark)
    rival = None if against is None else store.catalog.run(against).run_id
    if rival is not None and rival not in {run.run_id for run in runs}:
        raise UserError(f"run {rival} is not among the runs to select from: confirm against one that is")
    found = [_benchmark(store, runs, version, split=split, against=rival, alpha=alpha) for version in versions]
    selection = Selection(
        run_id=runs[-1].run_id,
        runs=tuple(run.run_id for run in runs),
        alpha=alpha,
        benchmarks=tuple(found),
        notes=_notes(runs),
    )
    store.catalog.save_selection(selection)
    return selection


def runs_of(store: Store, training_run: str, suite: str, *, up_to_step: int | None = None) -> list[str]:
    """The closed runs of a training run on a suite, one for each step, by step."""
    name, _, version = suite.partition("@")
    wanted = store.catalog.suite(name, version or None)
    found = [
        run
        for run in store.catalog.runs(training_run=training_run, suite=wanted.name, status="closed")
        if run.request.suite_id == wanted.suite_id and (up_to_step is None or run.step <= up_to_step)
    ]
    by_step: dict[int, Run] = {}
    # Newest first: the first run of the newest checkpoint of a step stands.
    for run in found:
        if run.step not in by_step or by_step[run.step].request.checkpoint_id == run.request.checkpoint_id:
            by_step[run.step] = run
    return [by_step[step].run_id for step in sorted(by_step)]


def _shared(store: Store, runs: Sequence[Run], benchmark: str | None) -> list[BenchmarkVersion]:
    common = [i for i in runs[0].request.benchmark_ids if all(i in run.request.benchmark_ids for run in runs)]
    if not common:
        raise NotComparableError("the runs share no benchmark version; select among runs of one suite")
    versions = [store.catalog.benchmark_by_id(benchmark_id) for benchmark_id in common]
    if benchmark is None:
        return versions
    if benchmark not in (names := [v.name for v in versions]):
        raise UserError(f"the runs do not share benchmark {benchmark!r}; {did_you_mean(benchmark, names)}")
    return [v for v in versions if v.name == benchmark]


def _benchmark(
    store: Store, runs: Sequence[Run], version: BenchmarkVersion, *, split: bool, against: str | None, alpha: float
) -> BenchmarkSelection:
    info = metric_of(version, version.primary_metric)
    empty = BenchmarkSelection(
        benchmark=version.name,
        metric=version.primary_metric,
        unit=info.unit,
        higher_is_better=info.higher_is_better,
    )
    sound = [run for run in runs if not _quarantined(store, run, version)]
    if len(sound) < 2:
        return replace(empty, not_selected="fewer than two runs have a number that guard let stand")
    table = _read(store, sound, version)
    if len(table.item_ids) < 2:
        return replace(empty, not_selected="fewer than two items were scored in all runs")
    sign = 1.0 if info.higher_is_better else -1.0
    best = best_of_many(sign * table.values, table.weights, table.clusters, alpha=alpha)
    candidates = [
        Candidate(
            run_id=run.run_id,
            label=_label(run),
            step=run.step,
            score=sign * float(best.scores[k]),
            shrunk=sign * float(best.shrunk[k]),
            in_set=bool(best.in_set[k]),
        )
        for k, run in enumerate(sound)
    ]
    return replace(
        empty,
        n_items=len(table.item_ids),
        candidates=tuple(sorted(candidates, key=lambda c: (-sign * c.score, c.step, c.run_id))),
        optimism=best.optimism,
        noise_sd=best.noise_sd,
        spread_sd=best.spread_sd,
        confirmation=_confirm(sound, version, table, against) if split else None,
        noise=_noise(store, sound, version, best.noise_sd**2),
    )


def _confirm(runs: Sequence[Run], version: BenchmarkVersion, table: _Table, against: str | None) -> Confirmation | None:
    """Select on the first half, measure on the second; None where a half has fewer than two items or clusters."""
    info = metric_of(version, version.primary_metric)
    sign = 1.0 if info.higher_is_better else -1.0
    first = halves(_units(table), table.strata)
    if min(first.sum(), (~first).sum()) < 2:
        return None
    scores = np.array([_score(table, k, first) for k in range(len(runs))])
    order = sorted(range(len(runs)), key=lambda k: (-sign * scores[k], runs[k].step, runs[k].run_id))
    chosen = order[0]
    latest = max(range(len(runs)), key=lambda k: (runs[k].step, runs[k].run_id))
    wanted = next((k for k, run in enumerate(runs) if run.run_id == against), latest)
    rival = wanted if wanted != chosen else order[1]
    rest = ~first
    values = table.values[:, rest]
    clusters = None if table.clusters is None else table.clusters[rest]
    weights = None if table.weights is None else table.weights[rest]
    measured = estimate(values[chosen], weights, clusters, binary=info.binary, bounds=fraction_bounds(info.unit))
    if info.binary and weights is None:
        test = paired_binary(values[chosen], values[rival], clusters)
    else:
        both = None if weights is None else (weights, weights)
        test = paired_continuous(values[chosen], values[rival], clusters, both)
    return Confirmation(
        n_select=int(first.sum()),
        n_confirm=int(rest.sum()),
        selected=_label(runs[chosen]),
        score_select=float(scores[chosen]),
        score=measured.score,
        ci95=measured.ci,
        against=_label(runs[rival]),
        delta=test.delta,
        delta_ci95=test.interval(),
        p=test.p,
    )


def _units(table: _Table) -> list[str]:
    """What is put into a half as a whole: an item, or all items of a cluster, so that no cluster lies in both."""
    if table.clusters is None:
        return table.item_ids
    names: dict[int, str] = {}
    for item_id, code in sorted(zip(table.item_ids, table.clusters.tolist(), strict=True)):
        names.setdefault(code, item_id)
    return [names[code] for code in table.clusters.tolist()]


def _score(table: _Table, k: int, rows: npt.NDArray[np.bool_]) -> float:
    weights = None if table.weights is None else table.weights[rows]
    return float(np.average(table.values[k, rows], weights=weights))


def _read(store: Store, runs: Sequence[Run], version: BenchmarkVersion) -> _Table:
    """The items that every run scored, by id, under the latest scorer that all of them have."""
    info = metric_of(version, version.primary_metric)
    graders = [store.scores.standing(run.run_id, version.benchmark_id) for run in runs]
    common = [grader for grader in graders[-1] if all(grader in found for found in graders)]
    if not common:
        raise NotComparableError(f"{version.name}: no one scorer version scored all of the runs; regrade them")
    shared: pa.Array | None = None
    parts = []
    for run in runs:
        rows = store.scores.read(
            run.run_id, version.benchmark_id, grader=common[-1], metric=version.primary_metric, columns=_COLUMNS
        )
        items = item_scores(rows, info, clustered=version.cluster_key is not None)
        kept = rows.filter(pa.array(items.scored))
        ids = kept["item_id"].combine_chunks()
        parts.append((ids, items.values, kept))
        shared = ids if shared is None else shared.filter(pc.is_in(shared, value_set=ids))
    assert shared is not None
    shared = shared.take(pc.sort_indices(shared))
    places = [pc.index_in(shared, value_set=ids).to_numpy(zero_copy_only=False) for ids, _, _ in parts]
    last = parts[-1][2].take(pa.array(places[-1]))
    items = item_scores(last, info, clustered=version.cluster_key is not None)
    return _Table(
        item_ids=shared.to_pylist(),
        values=np.stack([values[at] for (_, values, _), at in zip(parts, places, strict=True)]),
        weights=items.weights,
        clusters=items.clusters,
        strata=last["stratum"].to_pylist(),
    )


def _quarantined(store: Store, run: Run, version: BenchmarkVersion) -> bool:
    return any(
        m.quarantined
        for m in store.catalog.measurements(run.run_id)
        if m.benchmark_id == version.benchmark_id and m.metric == version.primary_metric
    )


def _noise(store: Store, runs: Sequence[Run], version: BenchmarkVersion, items: float) -> MeasuredNoise | None:
    """The checkpoints' own wobble, where all are of one training run."""
    names = {run.training_run for run in runs}
    if len(names) > 1 or "" in names:
        return None
    series = store.catalog.series(
        runs[0].training_run, version.name, version.primary_metric, tier=runs[0].tier, suite=runs[0].request.suite
    )
    sound = [
        p
        for p in series
        if p.measurement.benchmark_id == version.benchmark_id
        and p.measurement.score is not None
        and not p.measurement.quarantined
    ]
    looks = one_per_step(sound)
    return noise_record(store, version, looks, noise_of(looks, items))


def _label(run: Run) -> str:
    return f"{run.training_run} step {run.step}" if run.training_run else run.run_id[:12]


def _notes(runs: Sequence[Run]) -> tuple[str, ...]:
    notes = []
    if len({run.training_run for run in runs}) > 1:
        notes.append("the runs are of several training runs: what another seed would do is in no number here")
    if len({run.env_fingerprint for run in runs}) > 1:
        notes.append("the runs ran in different environments, whose effect is in the differences")
    return tuple(notes)
