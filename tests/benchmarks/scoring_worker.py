"""`python -m tests.benchmarks.scoring_worker WHAT PLACE`: scores once, and says what it cost, as JSON.

WHAT is a scorer and PLACE a file of rows, or WHAT is `archive` or `regrade` and PLACE a home folder.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eval_tasks.graders import finish_grading
from eval_tasks.records import Item, PromptTemplate, Response, ScorerRef
from eval_tasks.scoring import score, scorer_version
from eval_tasks.settings import Settings
from eval_tasks.store import open_store
from tests.benchmarks.scoring_data import write_archive
from tests.store import samples


def main() -> None:
    """Do it; print counts, seconds and memory."""
    what, place, *more = sys.argv[1:]
    work = {"archive": archive, "regrade": regrade}.get(what, rows_of(what))(Path(place), *more)
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    line = {
        "found": found,
        "seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - cpu,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    sys.stdout.write(json.dumps(line) + "\n")


def rows_of(scorer: str) -> Callable[..., Callable[[], Any]]:
    """A scorer alone over a file of rows: items and responses are read before the clock starts."""

    def prepare(path: Path) -> Callable[[], Any]:
        benchmark = samples.benchmark(
            name="rows",
            kind="generation",
            template=PromptTemplate(item=""),
            scorer=ScorerRef(name=scorer, version=scorer_version(scorer)),
        )
        pairs = []
        for k, line in enumerate(path.read_text("utf-8").splitlines()):
            row = json.loads(line)
            common = {"benchmark_id": benchmark.benchmark_id, "item_id": str(k), "status": "ok", "prompt_digest": ""}
            item = Item(item_id=str(k), fields=row, target=row.get("answer"))
            pairs.append((item, Response(**common, output=row["output"])))

        def work() -> dict[str, float]:
            found: Counter[str] = Counter()
            for item, response in pairs:
                for mark in score(benchmark, item, response):
                    found[mark.metric] += (mark.value or 0) * mark.weight
            return dict(found)

        return work

    return prepare


def archive(home: Path, n: str) -> Callable[[], Any]:
    """Make a run of `n` outputs."""

    def work() -> list[str]:
        with open_store(Settings(home=home)) as store:
            return list(write_archive(store, int(n)))

    return work


def regrade(home: Path, run_id: str, benchmark: str) -> Callable[[], Any]:
    """Score a run's stored outputs by exact match, from the store and back into it."""
    store = open_store(Settings(home=home))

    def work() -> str:
        return finish_grading(store, run_id=run_id, benchmark_name=benchmark, grader="exact_match")

    return work


if __name__ == "__main__":
    main()
