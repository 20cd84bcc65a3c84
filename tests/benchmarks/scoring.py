"""`make bench-scoring`: IFEval, GSM8K and exact match alone, beside lm-eval 0.4.9's own scorers, and a large regrading.

One JSON line per figure, with its bound and whether it was met. `figure` is wall seconds, the median of processes that
take turns with the reference's; `ratio` is the reference's CPU seconds by ours. Where `.venv-lm-eval` is not there
(`make parity-env`) or the public data is not, the line says what was skipped. `regrade` is of stored outputs, from the
store and back, in one process, with its peak memory and the machine's load: on a busy one its CPU seconds say more.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks import scoring_data

REPOSITORY = Path(__file__).parents[2]
GOLDEN = REPOSITORY / "../shared/golden"
REFERENCE_PYTHON = REPOSITORY / ".venv-lm-eval/bin/python"
N_STORED, N_EXACT = 500_000, 20_000
BOUNDS = {"ifeval": 5.0, "gsm8k": 1.0, "regrade": 60.0}
MOST_MB = 1_024
# Metrics that both have, and that must agree; IFEval's differ in the ways that its golden test lists by key.
SAME = {"gsm8k": ("strict", "flexible"), "exact_match": ("exact_match",)}


def main() -> None:
    """Measure, print one JSON line per figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["ifeval", "gsm8k", "exact_match", "regrade"], action="append")
    parser.add_argument("--items", type=int, default=N_STORED, help="stored outputs of the regrading")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for line in lines(Path(folder), asked.only or (), asked.items, asked.rounds):
            print(json.dumps(line), flush=True)  # noqa: T201


def lines(folder: Path, only: Sequence[str], n_stored: int, rounds: int) -> Iterator[dict[str, Any]]:
    """The figures, those of `only` or all."""
    for name in ("ifeval", "gsm8k", "exact_match"):
        if not only or name in only:
            yield alone(folder, name, rounds)
    if not only or "regrade" in only:
        yield regraded(folder / "home", n_stored)


def alone(folder: Path, name: str, rounds: int) -> dict[str, Any]:
    """One scorer over its rows, ours and the reference's in turn."""
    rows = {
        "ifeval": lambda: scoring_data.ifeval_rows(GOLDEN),
        "gsm8k": lambda: scoring_data.gsm8k_rows(GOLDEN),
        "exact_match": lambda: list(scoring_data.exact_rows(N_EXACT)),
    }[name]()
    if not rows:
        return {"benchmark": "scoring", "name": name, "skipped": f"no public data at {GOLDEN.resolve()}"}
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(_ours(name, path))
        if REFERENCE_PYTHON.exists():
            theirs.append(_reference(name, path))
    figure = statistics.median(each["seconds"] for each in ours)
    line = {
        "benchmark": "scoring",
        "name": name,
        "outputs": len(rows),
        "figure": round(figure, 4),
        "unit": "s",
        **_against(name, figure),
        "cpu_seconds": round(statistics.median(each["cpu_seconds"] for each in ours), 4),
        "peak_mb": round(max(each["peak_mb"] for each in ours)),
        "found": ours[0]["found"],
    }
    if not theirs:
        return {**line, "reference": f"skipped: no {REFERENCE_PYTHON.relative_to(REPOSITORY)}; make parity-env"}
    for metric in SAME.get(name, ()):
        if ours[0]["found"][metric] != theirs[0]["found"][metric]:
            raise SystemExit(f"{name}, {metric}: ours and lm-eval's disagree: {ours[0]} and {theirs[0]}")
    reference = statistics.median(each["cpu_seconds"] for each in theirs)
    return {
        **line,
        "reference": round(statistics.median(each["seconds"] for each in theirs), 4),
        "reference_cpu_seconds": round(reference, 4),
        "ratio": round(reference / line["cpu_seconds"], 2),
        "reference_found": theirs[0]["found"],
    }


def regraded(home: Path, n: int) -> dict[str, Any]:
    """Stored outputs scored by exact match."""
    run_id, benchmark = _ours("archive", home, str(n))["found"]
    cost = _ours("regrade", home, run_id, benchmark)
    return {
        "benchmark": "scoring",
        "name": "regrade",
        "outputs": n,
        "figure": round(cost["seconds"], 2),
        "unit": "s",
        **_against("regrade", cost["seconds"]),
        "cpu_seconds": round(cost["cpu_seconds"], 2),
        "load": round(os.getloadavg()[0], 1),
        "peak_mb": round(cost["peak_mb"]),
        "most_mb": MOST_MB,
        "memory_met": cost["peak_mb"] < MOST_MB,
    }


def _against(name: str, seconds: float) -> dict[str, Any]:
    return {"bound": BOUNDS[name], "met": seconds < BOUNDS[name]} if name in BOUNDS else {}


def _ours(what: str, *arguments: str | Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.benchmarks.scoring_worker", what, *map(str, arguments)]
    return _cost(command, os.environ | {"OMP_NUM_THREADS": "1"})


def _reference(name: str, path: Path) -> dict[str, Any]:
    worker = Path(__file__).with_name("scoring_reference.py")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    return _cost([str(REFERENCE_PYTHON), str(worker), name, str(path)], environment | offline)


def _cost(command: list[str], environment: dict[str, str]) -> dict[str, Any]:
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    main()
