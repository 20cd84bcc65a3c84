"""`python -m tests.benchmarks.compare_worker SIDE FOLDER RUN_A RUN_B`: one comparison, and what it cost, as JSON."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

Compare = Callable[[], tuple[int, float]]


def main() -> None:
    """Load the libraries, then compare; print items, the sum of the p-values, seconds and memory."""
    side, folder, run_a, run_b = sys.argv[1:]
    sides = {"ours": ours, "pandas": by_pandas, "scores_alone": partial(by_pandas, responses=False)}
    work = sides[side](Path(folder), run_a, run_b)
    before = time.process_time()
    n_pairs, p_sum = work()
    after = time.process_time()
    line = {
        "n_pairs": n_pairs,
        "p_sum": round(p_sum, 9),
        "cpu_seconds": after - before,
        "with_imports": after,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    sys.stdout.write(json.dumps(line) + "\n")


def ours(folder: Path, run_a: str, run_b: str) -> Compare:
    """The library, from the store and back into the catalog."""
    import pandas  # noqa: F401 - pyarrow loads it where it is installed; a laptop without it pays nothing

    from eval_tasks.compare import compare
    from eval_tasks.settings import Settings
    from eval_tasks.store import open_store

    store = open_store(Settings(home=folder / "home"))

    def work() -> tuple[int, float]:
        comparison = compare(store, run_a, run_b)
        tests = comparison.tests
        return sum(t.n_pairs for t in tests), sum(t.p or 0.0 for t in tests)

    return work


def by_pandas(folder: Path, run_a: str, run_b: str, *, responses: bool = True) -> Compare:
    """What a notebook does: every file whole, one merge, a test per benchmark."""
    import numpy as np
    import pandas as pd
    from scipy import stats
    from statsmodels.stats.proportion import proportion_confint

    def frame(run_id: str) -> Any:
        files = sorted((folder / "home" / "store" / "scores" / run_id).glob("*/*.parquet"))
        scores = pd.concat([pd.read_parquet(file).assign(benchmark_id=file.parent.name) for file in files])
        scores = scores[(scores.metric == "acc") & ~scores.status.isin(["missing", "excluded"])]
        if not responses:
            return scores
        files = sorted((folder / "responses" / run_id).glob("*.parquet"))
        rows = pd.concat([pd.read_parquet(file) for file in files])
        return rows.merge(scores, on=["benchmark_id", "item_id"], suffixes=("_response", ""), validate="one_to_one")

    def work() -> tuple[int, float]:
        a, b = (frame(run_id) for run_id in (run_a, run_b))
        both = a.merge(b, on=["benchmark_id", "item_id"], suffixes=("_a", "_b"), validate="one_to_one")
        p_values = []
        for _, rows in both.groupby("benchmark_id"):
            right_a, right_b = rows.value_a == 1, rows.value_b == 1
            only_a, only_b = int((right_a & ~right_b).sum()), int((~right_a & right_b).sum())
            smaller, n = min(only_a, only_b), only_a + only_b
            mid_p = 2 * stats.binom.cdf(smaller, n, 0.5) - stats.binom.pmf(smaller, n, 0.5)
            p_values.append(1.0 if only_a == only_b else min(1.0, mid_p))
            for right in (right_a, right_b):
                proportion_confint(right.sum(), len(rows), method="wilson")
        stats.false_discovery_control(np.array(p_values))
        return len(both), float(np.sum(p_values))

    return work


if __name__ == "__main__":
    main()
