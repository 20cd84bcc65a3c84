"""`make bench-compare`: two runs of 500,000 items over 50 benchmarks, compared from the store and by pandas.

One JSON line: CPU seconds and peak memory of ours and of pandas, and their ratio, from processes that take turns. The
baseline reads each run's files whole, merges by item and computes the same McNemar tests and q-values, with an interval
of each score in place of all else that a comparison has. Loading the libraries is measured apart on both sides. Beside
it: the baseline on the score files alone, how cost grows with items, and what 1,500 other runs in the catalog add.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from eval_tasks.settings import Settings
from eval_tasks.store import open_store
from tests.benchmarks.compare_archive import write_other_runs, write_runs

N_BENCHMARKS, N_ITEMS = 50, 10_000
N_OTHER_RUNS = 1_500
_REPOSITORY = Path(__file__).parents[2]


def main() -> None:
    """Measure, print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmarks", type=int, default=N_BENCHMARKS)
    parser.add_argument("--items", type=int, default=N_ITEMS, help="of each benchmark")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measured(Path(folder), asked.benchmarks, asked.items, asked.rounds)))  # noqa: T201


def measured(folder: Path, n_benchmarks: int, n_items: int, rounds: int, n_other: int = N_OTHER_RUNS) -> dict[str, Any]:
    """The benchmark's line."""
    with open_store(Settings(home=folder / "home")) as store:
        whole = write_runs(store, folder / "responses", n_benchmarks, n_items)
        fifth = write_runs(store, folder / "responses", n_benchmarks, n_items // 5)
    found: dict[str, list[dict[str, float]]] = {
        name: [] for name in ("ours", "pandas", "scores_alone", "fifth", "among")
    }
    for _ in range(rounds):
        found["ours"].append(_process(folder, "ours", *whole))
        found["pandas"].append(_process(folder, "pandas", *whole))
        found["scores_alone"].append(_process(folder, "scores_alone", *whole))
        found["fifth"].append(_process(folder, "ours", *fifth))
    with open_store(Settings(home=folder / "home")) as store:
        write_other_runs(store, whole[0], n_other)
    for _ in range(rounds):
        found["among"].append(_process(folder, "ours", *whole))
    cpu = {name: statistics.median(r["cpu_seconds"] for r in rows) for name, rows in found.items()}
    ours, theirs = found["ours"][0], found["pandas"][0]
    if (ours["n_pairs"], ours["p_sum"]) != (theirs["n_pairs"], theirs["p_sum"]):
        raise SystemExit(f"pandas and the library disagree: {theirs} against {ours}")
    peak = {name: max(r["peak_mb"] for r in found[name]) for name in ("ours", "pandas")}
    return {
        "benchmark": "compare",
        "unit": "CPU s",
        "items": n_benchmarks * n_items,
        "figure": round(cpu["ours"], 3),
        "baseline": round(cpu["pandas"], 3),
        "ratio": round(cpu["pandas"] / cpu["ours"], 1),
        "baseline_is": "pandas reading the two runs' files whole, responses and scores",
        "baseline_of_scores_alone": round(cpu["scores_alone"], 3),
        "ratio_of_scores_alone": round(cpu["scores_alone"] / cpu["ours"], 1),
        "with_imports": round(statistics.median(r["with_imports"] for r in found["ours"]), 3),
        "baseline_with_imports": round(statistics.median(r["with_imports"] for r in found["pandas"]), 3),
        "peak_mb": round(peak["ours"]),
        "baseline_peak_mb": round(peak["pandas"]),
        "five_times_the_items": round(cpu["ours"] / cpu["fifth"], 2),
        "among_other_runs": {"runs": n_other, "figure": round(cpu["among"], 3)},
        "rounds": rounds,
    }


def _process(folder: Path, side: str, run_a: str, run_b: str) -> dict[str, float]:
    """One comparison in a process of its own: CPU seconds of all its threads, peak resident memory."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.compare_worker", side, str(folder), run_a, run_b],
        cwd=_REPOSITORY,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(_REPOSITORY)},
        capture_output=True,
        text=True,
        check=True,
    )
    line: dict[str, float] = json.loads(done.stdout)
    return line


if __name__ == "__main__":
    main()
