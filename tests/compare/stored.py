"""Closed, graded runs in a real store, from lists of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from eval_tasks.records import BenchmarkVersion, Plan, Run, Score, to_json
from eval_tasks.store import Store
from tests.store import samples

GRADER = "choice@1+aaaaaaaa"


def ids(n: int) -> list[str]:
    return [f"i{k:04d}" for k in range(n)]


def scores_of(
    benchmark: BenchmarkVersion, values: Sequence[float | None], metric: str = "acc", **fields: Any
) -> list[Score]:
    names = fields.pop("item_ids", None) or ids(len(values))
    return [
        Score(
            benchmark_id=benchmark.benchmark_id,
            item_id=item_id,
            metric=metric,
            value=value,
            status="missing" if value is None else "ok",
            **fields,
        )
        for item_id, value in zip(names, values, strict=True)
    ]


def stored_run(
    store: Store,
    number: int,
    *scored: tuple[BenchmarkVersion, Sequence[Score]],
    grader: str = GRADER,
    corpora: tuple[str, ...] = (),
    truncated: int = 0,
    **changes: Any,
) -> Run:
    """A run of these benchmarks: registered, planned, answered, closed and scored by `grader`."""
    checkpoint = samples.checkpoint(checkpoint_id=f"{number:064x}", step=100 * number, corpora=corpora)
    store.catalog.save_checkpoint(checkpoint)
    run = samples.run(number, step=100 * number, **changes)
    request = replace(
        run.request,
        checkpoint_id=checkpoint.checkpoint_id,
        benchmark_ids=tuple(benchmark.benchmark_id for benchmark, _ in scored),
    )
    batches = []
    for position, (benchmark, rows) in enumerate(scored):
        store.catalog.save_benchmark(benchmark)
        names = sorted({row.item_id for row in rows})
        batches.append(samples.batch(position, *names, benchmark_id=benchmark.benchmark_id))
        store.scores.write(run.run_id, benchmark.benchmark_id, grader, rows)
    plan = Plan(
        run_id=run.run_id,
        request=request,
        environment=run.environment,
        checkpoint_uri="",
        shards=(),
        batches_blob=store.blobs.put_batches(batches),
        n_batches=len(batches),
        n_items=sum(len(batch.item_ids) for batch in batches),
    )
    results = {}
    for batch in batches:
        answers = [
            samples.response(item_id, benchmark_id=batch.benchmark_id, output_truncated=k < truncated)
            for k, item_id in enumerate(batch.item_ids)
        ]
        results[batch.batch] = store.responses.write_batch(run.run_id, 0, batch.batch, answers)
    store.responses.close(run.run_id, results)
    return store.catalog.create_run(replace(run, request=request, plan_blob=store.blobs.put_json(to_json(plan))))
