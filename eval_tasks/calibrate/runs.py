"""Who takes part in a calibration: one sound run for each checkpoint, all scored by one version; or a refusal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from eval_tasks.errors import UserError
from eval_tasks.records import BenchmarkVersion, Run

if TYPE_CHECKING:
    from eval_tasks.store import Store

MIN_RUNS = 20
MIN_TRAINING_RUNS = 5


def participants(
    store: Store, benchmark: BenchmarkVersion, metric: str, run_ids: Sequence[str] | None, exclude: Sequence[str]
) -> tuple[str, list[Run]]:
    """The scorer version that most of the runs have, and these runs by id. `run_ids` None: the whole archive."""
    grader, runs = _one_grader(store, benchmark, _eligible(store, benchmark, metric, run_ids, exclude))
    return grader, sorted(_one_per_checkpoint(runs), key=lambda run: run.run_id)


def refuse_few(benchmark: BenchmarkVersion, runs: Sequence[Run], groups: Sequence[str]) -> None:
    """Raise UserError, saying what is short, when a calibration would mean nothing. groups: of dependent runs."""
    if len(runs) < MIN_RUNS:
        raise UserError(
            f"{benchmark.name}@{benchmark.version}: {len(runs)} checkpoints have sound scores of one scorer version; a "
            f"calibration needs {MIN_RUNS} (some hundreds are better)"
        )
    if len(groups) < MIN_TRAINING_RUNS:
        raise UserError(
            f"{benchmark.name}@{benchmark.version}: the {len(runs)} checkpoints are of {len(groups)} training "
            f"run{'' if len(groups) == 1 else 's'} ({', '.join(groups)}), whose checkpoints are not independent; a "
            f"calibration needs {MIN_TRAINING_RUNS}. Imported runs of other models count"
        )


def _eligible(
    store: Store, benchmark: BenchmarkVersion, metric: str, run_ids: Sequence[str] | None, exclude: Sequence[str]
) -> list[Run]:
    """Newest first. A run that was named must fit; of the archive, those that do not are left out."""
    left_out = {store.catalog.run(run_id).run_id for run_id in exclude}
    if run_ids is None:
        runs = store.catalog.runs(status="closed")
    else:
        runs = [store.catalog.run(run_id) for run_id in run_ids]
        for run in runs:
            run.require_evaluation()
            if (why := _unfit(store, run, benchmark, metric)) is not None:
                raise UserError(f"run {run.run_id} cannot take part in a calibration of {benchmark.name}: {why}")
    return [run for run in runs if run.run_id not in left_out and _unfit(store, run, benchmark, metric) is None]


def _unfit(store: Store, run: Run, benchmark: BenchmarkVersion, metric: str) -> str | None:
    if run.status != "closed":
        return f"it is {run.status}, not closed"
    if run.origin == "mock":
        return "a mock engine made up its rows"
    if benchmark.benchmark_id not in run.request.benchmark_ids:
        return f"it has no rows of version {benchmark.version}"
    numbers = store.catalog.measurements(run.run_id)
    found = [m for m in numbers if m.benchmark_id == benchmark.benchmark_id and m.metric == metric]
    if not found:
        return f"it has no {metric}"
    return "its number is quarantined" if any(m.quarantined for m in found) else None


def _one_grader(store: Store, benchmark: BenchmarkVersion, runs: list[Run]) -> tuple[str, list[Run]]:
    """The scorer version that most runs have, of several the one written last; and the runs that have it."""
    standing = {run.run_id: store.scores.standing(run.run_id, benchmark.benchmark_id) for run in runs}
    counts: Counter[str] = Counter()
    for run in runs:
        counts.update(standing[run.run_id][::-1])
    grader = counts.most_common(1)[0][0] if counts else ""
    return grader, [run for run in runs if grader in standing[run.run_id]]


def _one_per_checkpoint(runs: Sequence[Run]) -> list[Run]:
    """The newest run of each checkpoint; imported rows claim none, and stand for themselves."""
    chosen: dict[str, Run] = {}
    for run in runs:
        chosen.setdefault(run.request.checkpoint_id or run.run_id, run)
    return list(chosen.values())
