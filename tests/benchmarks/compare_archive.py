"""Graded runs of a given size in a real store, for the benchmark of comparing them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from eval_tasks.records import BenchmarkVersion, Measurement, Run, Score
from eval_tasks.store import Store
from eval_tasks.store.parquet import RESPONSES
from tests.store import samples

GRADER = "choice@1+aaaaaaaa"
METRICS = ("acc", "acc_norm")
_LETTERS = "ABCD"


def write_runs(store: Store, responses: Path, n_benchmarks: int, n_items: int) -> tuple[str, str]:
    """Two closed runs, scored on `n_benchmarks` benchmarks of `n_items` items each; their ids.

    `responses`: a folder for files in the form of a closed run's response files, one per run and benchmark. Ours reads
    none of them; who reads a run's files whole does.
    """
    benchmarks = [
        samples.benchmark(name=f"bench-{k:02d}", version=f"{n_items}", items_digest=f"{n_items:032x}{k:032x}")
        for k in range(n_benchmarks)
    ]
    for benchmark in benchmarks:
        store.catalog.save_benchmark(benchmark)
    runs = [_run(store, 10 * n_items + arm, benchmarks) for arm in (1, 2)]
    for arm, run in enumerate(runs):
        for k, benchmark in enumerate(benchmarks):
            store.scores.write(run.run_id, benchmark.benchmark_id, GRADER, _scores(benchmark, k, arm, n_items))
            _write_responses(responses / run.run_id / f"{benchmark.benchmark_id}.parquet", benchmark, n_items)
    return runs[0].run_id, runs[1].run_id


def write_other_runs(store: Store, like: str, n: int) -> None:
    """`n` further runs of the catalog, with a measurement each and without scores."""
    run = store.catalog.run(like)
    measurement = Measurement(
        run_id=like,
        benchmark_id=run.request.benchmark_ids[0],
        benchmark="bench-00",
        version="1",
        metric="acc",
        primary=True,
        score=0.5,
        n=100,
        n_attempted=100,
        se=0.05,
        ci95=(0.4, 0.6),
        ci95_method="Wilson",
    )
    for number in range(n):
        run_id = f"f{number:031x}"
        store.catalog.create_run(replace(run, run_id=run_id, step=number))
        store.catalog.save_measurements(run_id, [replace(measurement, run_id=run_id)])


def _run(store: Store, number: int, benchmarks: list[BenchmarkVersion]) -> Run:
    checkpoint = samples.checkpoint(checkpoint_id=f"{number:064x}", step=number, corpora=())
    store.catalog.save_checkpoint(checkpoint)
    run = samples.run(number, step=number, status="closed")
    ids = tuple(benchmark.benchmark_id for benchmark in benchmarks)
    request = replace(run.request, checkpoint_id=checkpoint.checkpoint_id, benchmark_ids=ids)
    return store.catalog.create_run(replace(run, request=request))


def _ids(benchmark: BenchmarkVersion, n: int) -> list[str]:
    return sorted(f"{benchmark.name}-{i * 2654435761 % 2**32:08x}" for i in range(n))


def _write_responses(path: Path, benchmark: BenchmarkVersion, n: int) -> None:
    """Choice items: log-probabilities of four choices of two tokens each, and no output."""
    random = np.random.default_rng(n)
    logprobs = [list(row) for row in -random.gamma(2, 1, (n, 4))]
    columns: dict[str, Sequence[Any]] = {
        "benchmark_id": [benchmark.benchmark_id] * n,
        "item_id": _ids(benchmark, n),
        "status": ["ok"] * n,
        "reason": [""] * n,
        "prompt_digest": [f"{x:064x}" for x in random.integers(2**62, size=n).tolist()],
        "output": [""] * n,
        "output_ids": [[]] * n,
        "finish_reason": [""] * n,
        "logprobs": logprobs,
        "token_logprobs": [[[x / 2, x / 2] for x in row] for row in logprobs],
        "n_prompt_tokens": random.integers(60, 900, n).tolist(),
        "n_output_tokens": [0] * n,
        "n_bytes": [0] * n,
        "prompt_truncated": [False] * n,
        "output_truncated": [False] * n,
        "latency_ms": random.gamma(3, 10, n).tolist(),
        "row_digest": [f"{x:064x}" for x in random.integers(2**62, size=n).tolist()],
        "shard": [k // 5_000 for k in range(n)],
        "batch": [k // 32 for k in range(n)],
        "samples": [None] * n,
        "greedy": [[False] * 4] * n,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as handle:
        RESPONSES.write(handle, RESPONSES.table(columns))


def _scores(benchmark: BenchmarkVersion, k: int, arm: int, n: int) -> Iterator[Score]:
    """Seven in ten right; one in twenty items differs between the arms."""
    ids = _ids(benchmark, n)
    right = np.random.default_rng(k).random(n) < 0.7
    flipped = np.random.default_rng([k, arm]).random(n) < 0.025
    for i, item_id in enumerate(ids):
        value = float(right[i] ^ flipped[i])
        for metric in METRICS:
            yield Score(
                benchmark_id=benchmark.benchmark_id,
                item_id=item_id,
                metric=metric,
                value=value,
                status="ok",
                extracted=_LETTERS[i % 4],
                detail=f'{{"margin":{i % 97 / 100}}}',
                stratum=f"subject-{i % 57}",
            )
