"""`make bench-guard`: the data contract of one benchmark of 500,000 rows, read from Parquet, by both validators.

One JSON line: seconds beside Great Expectations' import, that import, and peak memory, each from a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from eval_tasks.store.parquet import RESPONSES, SCORES, Form, opened

N_ROWS = 500_000
METRICS = ("acc", "acc_norm")
_REPOSITORY = Path(__file__).parents[2]


def main() -> None:
    """Measure, print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=N_ROWS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker:
        line = one(Path(asked.worker[0]), asked.worker[1], asked.rows)
    else:
        with tempfile.TemporaryDirectory() as folder:
            line = measured(Path(folder), asked.rows, asked.rounds)
    print(json.dumps(line))  # noqa: T201


def measured(folder: Path, n_rows: int, rounds: int) -> dict[str, Any]:
    """The benchmark's line."""
    write(folder, n_rows)
    found = {by: [_process(folder, by, n_rows) for _ in range(rounds)] for by in ("great_expectations", "built_in")}
    theirs, ours = found["great_expectations"], found["built_in"]
    return {
        "benchmark": "guard",
        "unit": "s",
        "rows": n_rows,
        "figure": round(statistics.median(r["seconds"] for r in theirs), 2),
        "import": round(statistics.median(r["import"] for r in theirs), 2),
        "peak_mb": round(max(r["peak_mb"] for r in theirs)),
        "built_in": round(statistics.median(r["seconds"] for r in ours), 2),
        "built_in_peak_mb": round(max(r["peak_mb"] for r in ours)),
        "expectations": theirs[0]["expectations"],
        "rounds": rounds,
    }


def write(folder: Path, n_rows: int) -> None:
    """Responses with four logprobs a row, and the scores of two metrics, as a run's files have them."""
    rng = np.random.default_rng(7)
    ids = [f"item-{n:07d}" for n in range(n_rows)]
    values = pa.array(rng.normal(-20, 5, 4 * n_rows))
    logprobs = pa.ListArray.from_arrays(pa.array(np.arange(0, 4 * n_rows + 1, 4), pa.int32()), values)
    text = pa.repeat("", n_rows)
    constant = {"benchmark_id": "b" * 32, "status": "ok", "prompt_digest": "p" * 64, "row_digest": "d" * 64}
    columns = {name: pa.repeat(value, n_rows) for name, value in constant.items()}
    columns |= {"item_id": pa.array(ids), "reason": text, "output": text, "finish_reason": text, "logprobs": logprobs}
    _save(RESPONSES, folder / "responses.parquet", columns, n_rows)
    for metric in METRICS:
        columns = {"item_id": pa.array(ids), "metric": pa.repeat(metric, n_rows), "status": pa.repeat("ok", n_rows)}
        columns["value"] = pa.array(rng.integers(0, 2, n_rows).astype(float))
        _save(SCORES, folder / f"scores-{metric}.parquet", columns, n_rows)


def _save(form: Form, path: Path, columns: dict[str, Any], n_rows: int) -> None:
    arrays = []
    for field in form.schema:
        empty = pa.nulls(n_rows, field.type)
        if not field.nullable:
            zero: Any = [] if pa.types.is_list(field.type) else "" if pa.types.is_string(field.type) else 0
            zero = False if pa.types.is_boolean(field.type) else zero
            empty = pa.repeat(pa.scalar(zero, field.type), n_rows)
        arrays.append(columns.get(field.name, empty).cast(field.type))
    with path.open("wb") as handle:
        form.write(handle, pa.Table.from_arrays(arrays, schema=form.schema))


def one(folder: Path, by: Any, n_rows: int) -> dict[str, Any]:
    """Read and validate, here."""
    from eval_tasks.guard import contract

    began = time.perf_counter()
    if by == "great_expectations":
        contract.validate([contract.shards_part(["warm"])], by)
    imported = time.perf_counter() - began
    began = time.perf_counter()
    columns = ["item_id", "status", "reason", "logprobs"]
    parts = [contract.rows_part("bench", _read(RESPONSES, folder / "responses.parquet", columns), n_rows)]
    for metric in METRICS:
        scores = _read(SCORES, folder / f"scores-{metric}.parquet", ["metric", "value"])
        parts.append(contract.scores_part("bench", scores, metric=metric, unit="fraction", n_planned=n_rows))
    report = contract.validate(parts, by)
    seconds = time.perf_counter() - began
    if not all(result.passed for result in report.results):
        raise SystemExit(f"sound rows break the contract: {report}")
    return {
        "seconds": seconds,
        "import": imported,
        "peak_mb": _peak_mb(),
        "expectations": len(report.results),
    }


def _peak_mb() -> float:
    """Of this process; what getrusage says counts the process that it was forked from."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def _read(form: Form, path: Path, columns: list[str]) -> Any:
    with opened(path.open("rb"), str(path)) as file:
        return form.read(file, columns)


def _process(folder: Path, by: str, n_rows: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.guard", "--worker", str(folder), by, "--rows", str(n_rows)],
        cwd=_REPOSITORY,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(_REPOSITORY)},
        capture_output=True,
        text=True,
        check=True,
    )
    line: dict[str, Any] = json.loads(done.stdout)
    return line


if __name__ == "__main__":
    main()
