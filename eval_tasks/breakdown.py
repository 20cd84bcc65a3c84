"""A stored run and one of its benchmarks -> its score per stratum or per category, each with n, error and interval.

The groups are described, not tested: with many of them, some will look odd by chance. Changes nothing that is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from eval_tasks.errors import UserError
from eval_tasks.scoring import metric_of
from eval_tasks.stats.intervals import Interval
from eval_tasks.stats.item_scores import item_scores, measured
from eval_tasks.store import Store

By = Literal["stratum", "category"]

_COLUMNS = ("item_id", "value", "weight", "status", "stratum", "cluster")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupScore:
    """One group's score; `group` is None for items that name none. `n_missing`: items of it without a score."""

    group: str | None
    score: float | None
    n: int
    se: float | None
    ci95: Interval | None
    n_missing: int


def breakdown(
    store: Store, run_id: str, benchmark_id: str, *, by: By, metric: str | None = None, grader: str | None = None
) -> list[GroupScore]:
    """The score of each group, by name; `metric` None is the primary one, `grader` None the one that scored last.

    Raises UserError when the benchmark declares no such groups, and for an unknown metric or grader.
    """
    benchmark = store.catalog.benchmark_by_id(benchmark_id)
    key = benchmark.stratum_key if by == "stratum" else benchmark.category_key
    if key is None:
        raise UserError(f"benchmark {benchmark.name!r} declares no {by}: name a column in item.{by} of its YAML file")
    metric = metric or benchmark.primary_metric
    info = metric_of(benchmark, metric)
    scores = store.scores.read(run_id, benchmark_id, grader=grader, metric=metric, columns=_COLUMNS)
    if by == "stratum":
        names = scores["stratum"].to_pylist()
    else:
        category = {i.item_id: i.metadata.get("category") for i in store.blobs.get_items(benchmark.items_blob)}
        names = [category.get(item_id) for item_id in scores["item_id"].to_pylist()]
    items = item_scores(scores, info, clustered=benchmark.cluster_key is not None)
    groups = []
    for group in sorted(set(names), key=lambda name: (name is None, name or "")):
        rows = np.array(pa.array([name == group for name in names], type=pa.bool_()))
        chosen = items.take(rows)
        found = measured(chosen, info, n_missing=chosen.n_missing)
        groups.append(
            GroupScore(
                group=group, score=found.score, n=found.n, se=found.se, ci95=found.ci, n_missing=chosen.n_missing
            )
        )
    return groups
