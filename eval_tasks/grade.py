"""Response rows -> score sets. Closes the run first: a run that lacks rows is incomplete, whatever its tasks said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from eval_tasks.errors import CheckpointGoneError, InfraError
from eval_tasks.records import BenchmarkVersion, Plan, Run
from eval_tasks.scoring import check_scorer
from eval_tasks.scoring.run_rows import planned_items, score_run
from eval_tasks.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeReport:
    """Rows scored per benchmark name, and the grader that scored them."""

    run_id: str
    n_rows: dict[str, int]
    graders: dict[str, str]


def grade(store: Store, *, run_id: str, progress: Callable[[int, int], None] | None = None) -> GradeReport:
    """Close the run's responses and score every row under its benchmark's scorer version.

    Raises InfraError when planned batches have no result (the run becomes ``incomplete``), CheckpointGoneError when
    none will come any more, UserError when a benchmark was registered with another scorer than this release has (the
    rows are kept), DataError when a benchmark's rows are not the planned ones. Grading again gives the same score sets
    and is a no-op.
    """
    run = store.catalog.run(run_id)
    run.require_evaluation()
    plan = store.plan(run.plan_blob or "")
    close_run(store, run, plan)
    benchmarks = [store.catalog.benchmark_by_id(benchmark_id) for benchmark_id in run.request.benchmark_ids]
    for benchmark in benchmarks:
        check_scorer(benchmark)
    planned = planned_items(store, plan)
    thinned = store.responses.thinned_at(run_id)
    total = sum(len(ids) for ids in planned.values())
    done = 0
    n_rows: dict[str, int] = {}
    graders: dict[str, str] = {}
    for benchmark in benchmarks:
        item_ids = planned[benchmark.benchmark_id]
        grader = grader_of(benchmark)
        # A run that retention has thinned keeps the scores it has: there is nothing left to score.
        if not (thinned and grader in store.scores.graders(run_id, benchmark.benchmark_id)):
            store.scores.write(run_id, benchmark.benchmark_id, grader, score_run(store, run_id, benchmark, item_ids))
        n_rows[benchmark.name] = len(item_ids)
        graders[benchmark.name] = grader
        done += len(item_ids)
        if progress:
            progress(done, total)
    return GradeReport(run_id=run_id, n_rows=n_rows, graders=graders)


def grader_of(benchmark: BenchmarkVersion) -> str:
    """The grader reference of a benchmark's own scorer: name, declared version and the head of its digest."""
    return f"{benchmark.scorer.name}@{benchmark.scorer.version}+{benchmark.scorer_digest[:8]}"


def close_run(store: Store, run: Run, plan: Plan) -> None:
    """Compact the run's shard files behind one manifest, once every planned batch has a result. Idempotent."""
    closed = store.responses.is_closed(run.run_id)
    results = store.queue.results(run.run_id)
    if not closed and len(results) < plan.n_batches:
        if run.status == "gone":
            raise CheckpointGoneError(f"run {run.run_id} ended before all its rows were there: {run.reason}")
        done = set(results)
        lost = sorted({b.shard for b in store.blobs.get_batches(plan.batches_blob) if b.batch not in done})
        shards = ", ".join(map(str, lost[:10])) + (" ..." if len(lost) > 10 else "")
        n_lost = plan.n_batches - len(results)
        reason = (
            f"run {run.run_id} is incomplete: {n_lost} of {plan.n_batches} batches have no result (shards {shards}); "
            "clear those tasks to run them"
        )
        store.catalog.update_run(run.run_id, status="incomplete", reason=reason)
        raise InfraError(reason)
    # A process that died after the manifest was written has left the rest of all this to be done.
    if results or not closed:
        store.responses.close(run.run_id, results)
    if run.status != "closed":
        now = datetime.now(UTC).isoformat(timespec="seconds")
        store.catalog.update_run(run.run_id, status="closed", reason="", closed_at=run.closed_at or now)
    store.queue.compact(run.run_id)
