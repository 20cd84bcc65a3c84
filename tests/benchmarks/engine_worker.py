"""One worker process: loads a checkpoint, then does the same requests again for every line on stdin.

On stdout: `ready`, then the wall seconds of each piece of work.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from eval_tasks.engine import load_engine
from eval_tasks.records import EngineConfig, Request
from eval_tasks.records.codec import from_json
from tests.benchmarks.engine_rounds import timed


def main() -> None:
    """Arguments: checkpoint folder, dtype, JSONL file of requests."""
    folder, dtype, path = sys.argv[1:]
    requests = [from_json(Request, json.loads(line)) for line in Path(path).read_text("utf-8").splitlines()]
    config = EngineConfig(dtype=dtype, prefix="shared")  # type: ignore[arg-type]
    engine = load_engine(Path(folder), config)
    engine.respond(requests[:1])
    print("ready", flush=True)  # noqa: T201
    for _ in sys.stdin:
        seconds = timed(lambda: engine.tuned(engine.tuning).respond(requests))
        print(seconds.wall, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
