"""`make bench-pipeline`: 1,440 checkpoints through the watcher, the ledger and the dispatcher alone, one after another.

Each lands as files, is found, looked into, settled, dispatched and recorded by the code that the triggerer and the
DAG `watch_checkpoints` run, on a real catalog; Airflow itself is left out. What is measured is the machine's seconds
from a landing to its dispatch, without the quiet period, and whether they grow with the checkpoints that came before.
One JSON line. A checkpoint that is dropped, doubled or out of order ends the program with its step.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from checkpoint_eval.ledger import Watch, dispatches, record_dispatch
from eval_tasks.settings import Config, Settings
from eval_tasks.store import Store, open_store

START = datetime(2026, 3, 1, tzinfo=UTC)
HALF_HOUR = timedelta(minutes=30)
N_CHECKPOINTS = 1440


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoints", type=int, default=N_CHECKPOINTS)
    n = parser.parse_args(arguments).checkpoints
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(Path(folder), n)))  # noqa: T201


def measure(folder: Path, n: int) -> dict[str, object]:
    """Land `n` checkpoints, one every half hour of given time. Raises SystemExit for one that is lost or double."""
    config = Config.model_validate(
        {
            "training_runs": [
                {
                    "name": "run",
                    "uri": str(folder / "run"),
                    "quiet_seconds": 0,
                    "health": {"suite": "health", "baseline": "previous"},
                    "selection": {"suite": "selection", "every": 10},
                }
            ]
        }
    )
    seconds: list[float] = []
    fired: list[tuple[str, int]] = []
    with open_store(Settings(home=folder / "home")) as store:
        watch = Watch(store)
        for step in range(1, n + 1):
            land(folder / f"run/step-{step}", step)
            began = time.perf_counter()
            fired += fire(store, watch, config, START + step * HALF_HOUR, step)
            seconds.append(time.perf_counter() - began)
    expected = [(tier, step) for step in range(1, n + 1) for tier in ("health", "selection")[: 2 - bool(step % 10)]]
    if fired != expected:
        wrong = next((pair for pair in zip(fired, expected, strict=False) if pair[0] != pair[1]), (fired, expected))
        raise SystemExit(f"dispatched otherwise than landed: {wrong}")
    slope = statistics.linear_regression(range(n), seconds).slope
    return {
        "benchmark": "pipeline",
        "unit": "s",
        "n_checkpoints": n,
        "dispatched": len(fired),
        "landing_to_dispatch_median": round(statistics.median(seconds), 4),
        "landing_to_dispatch_worst": round(max(seconds), 4),
        "first_hundred_median": round(statistics.median(seconds[:100]), 4),
        "last_hundred_median": round(statistics.median(seconds[-100:]), 4),
        "slope_ms_per_thousand_checkpoints": round(slope * 1e6, 2),
    }


def fire(store: Store, watch: Watch, config: Config, now: datetime, step: int) -> list[tuple[str, int]]:
    """Look until a landing is to be fired, fire it, and record that; (tier, step) of each DAG run."""
    for look in range(10):
        landing_ids = watch.poll(config, now + timedelta(seconds=look))
        if landing_ids:
            due = dispatches(store, config, landing_ids, now)
            record_dispatch(store, landing_ids, now)
            return [(str(d["trigger_dag_id"]).removeprefix("evaluate_"), int(d["conf"]["step"])) for d in due]
    raise SystemExit(f"step {step} landed, and was not found in ten looks")


def land(folder: Path, step: int) -> None:
    """A complete checkpoint of one tensor."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "llama"}', "utf-8")
    (folder / "tokenizer.json").write_text("{}", "utf-8")
    header = json.dumps({"w": {"dtype": "I32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    data = len(header).to_bytes(8, "little") + header + step.to_bytes(4, "little")
    (folder / "model.safetensors").write_bytes(data)


if __name__ == "__main__":
    main()
