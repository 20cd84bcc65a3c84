"""`make bench-contamination`: a generated corpus held against 100,000 items of 300 words, beside two plain ways.

One JSON line per figure, in MB of text per second of CPU, reading the zstd Parquet files included: at n = 13, at n = 8
and 13 together, on one process and on two at once. The baselines (a Python set, vectorised numpy) read a part of the
same corpus. The benchmark fails when a plant is missed or an item is found that was not planted.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.benchmarks.contamination_corpus import ITEM_WORDS, PLANT_WORDS, write_corpus

_REPOSITORY = Path(__file__).parents[2]


def main() -> None:
    """Measure, print the lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1000, help="of text in the corpus")
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--baseline-megabytes", type=int, default=40, help="of text that the baselines read")
    parser.add_argument("--folder", type=Path, default=None, help="keep the generated files here, or take those there")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for line in measured(asked.folder or Path(scratch), asked.megabytes, asked.items, asked.baseline_megabytes):
            print(json.dumps(line), flush=True)  # noqa: T201


def measured(folder: Path, megabytes: int, n_items: int, baseline_megabytes: int) -> list[dict[str, Any]]:
    """The benchmark's lines. Ends the process when anything is found that should not be, or missed."""
    kept = folder / "made.json"
    made = (
        json.loads(kept.read_text("utf-8"))
        if kept.exists()
        else write_corpus(
            folder, n_bytes=megabytes * 10**6, n_items=n_items, n_plants=max(10, n_items // 100), n_files=2
        )
    )
    planted = list(range(made["plants"]))
    one = _process(folder, "ours", "13", "0,1")
    both = _process(folder, "ours", "8,13", "0,1")
    for line, grams in ((one, ("13",)), (both, ("13",))):
        for n in grams:
            if line["found"][n] != planted:
                missed = sorted(set(planted) - set(line["found"][n]))
                raise SystemExit(
                    f"n={n}: missed plants {missed[:5]}, or found {len(line['found'][n])} of {len(planted)}"
                )
    if both["contaminated"]:
        raise SystemExit(f"{both['contaminated']} items were called contaminated by 13 of {ITEM_WORDS} words")
    two = _at_once(folder, "13", ("0", "1"))
    sets = _process(folder, "set_join", "13", str(baseline_megabytes * 10**6))
    vectors = _process(folder, "numpy_join", "13", str(baseline_megabytes * 10**6))
    if sets["found"] != vectors["found"] or not set(sets["found"]) <= set(planted):
        raise SystemExit("the baselines disagree with each other or with what was planted")
    speed = _speed(one)
    shared = {"unit": "MB of text per CPU second", "items": n_items, "text_mb": round(made["text_bytes"] / 1e6)}
    return [
        {
            "benchmark": "contamination, n=13",
            **shared,
            "figure": round(speed),
            "million_words_per_second": round(one["n_words"] / one["cpu_seconds"] / 1e6, 1),
            "set_join": round(_speed(sets), 1),
            "times_set_join": round(speed / _speed(sets), 1),
            "numpy_join": round(_speed(vectors), 1),
            "times_numpy_join": round(speed / _speed(vectors), 1),
            f"plants_of_{PLANT_WORDS}_words": len(planted),
            "plants_found": len(one["found"]["13"]),
            "others_found": 0,
            "table_mb": round(one["table_mb"], 1),
            "process_peak_mb": round(one["peak_mb"]),
            "set_join_peak_mb": round(sets["peak_mb"]),
            "table_build_seconds": round(one["build_seconds"], 1),
        },
        {
            "benchmark": "contamination, n=8 and 13",
            **shared,
            "figure": round(_speed(both)),
            "table_mb": round(both["table_mb"], 1),
            "process_peak_mb": round(both["peak_mb"]),
            "items_found_at_8": len(both["found"]["8"]),
            "items_found_at_13": len(both["found"]["13"]),
        },
        {
            "benchmark": "contamination, two processes at once",
            **shared,
            "figure": [round(_speed(each)) for each in two],
            "of_one_process": round(min(_speed(each) for each in two) / speed, 2),
        },
    ]


def _speed(line: dict[str, Any]) -> float:
    return float(line["text_bytes"] / line["cpu_seconds"] / 1e6)


def _start(folder: Path, side: str, grams: str, rest: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks.contamination_worker", side, str(folder), grams, rest],
        cwd=_REPOSITORY,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(_REPOSITORY)},
        stdout=subprocess.PIPE,
        text=True,
    )


def _ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"a side of the benchmark failed with {process.returncode}; its error is above")
    line: dict[str, Any] = json.loads(out)
    return line


def _process(folder: Path, side: str, grams: str, rest: str) -> dict[str, Any]:
    return _ended(_start(folder, side, grams, rest))


def _at_once(folder: Path, grams: str, files: tuple[str, ...]) -> list[dict[str, Any]]:
    return [_ended(process) for process in [_start(folder, "ours", grams, file) for file in files]]


if __name__ == "__main__":
    main()
