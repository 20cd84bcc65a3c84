"""A stored run and one of its benchmarks -> its score per stratum or per category, each with n, error and interval.

Beside them the micro average (all items alike) and the macro average (all groups alike): two metrics, each with its own
error. The groups are described, not tested: with many of them, some will look odd by chance. Changes nothing that is
stored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from eval_tasks.errors import UserError
from eval_tasks.scoring import metric_of
from eval_tasks.stats.intervals import Interval, macro_average
from eval_tasks.stats.item_scores import fraction_bounds, item_scores, measured
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Average:
    """A score over all items (`n` counts them) or over all groups (`n` counts those)."""

    score: float | None
    n: int
    se: float | None
    ci95: Interval | None
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """Groups by name, and their averages; `macro` is over groups that have a score."""

    groups: tuple[GroupScore, ...]
    micro: Average
    macro: Average


def breakdown(
    store: Store, run_id: str, benchmark_id: str, *, by: By, metric: str | None = None, grader: str | None = None
) -> Breakdown:
    """The score of each group; `metric` None is the primary one, `grader` None the one that scored last.

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
    items = item_scores(
        scores,
        info,
        clustered=benchmark.cluster_key is not None,
        stratified=benchmark.stratum_key is not None,
    )
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
    micro = measured(items, info, n_missing=items.n_missing)
    return Breakdown(
        groups=tuple(groups),
        micro=Average(score=micro.score, n=micro.n, se=micro.se, ci95=micro.ci, method=micro.method),
        macro=_macro(groups, fraction_bounds(info.unit)),
    )


def _macro(groups: list[GroupScore], bounds: Interval | None) -> Average:
    """Groups count alike. A group of one item has no error, and then their average has none.

    Missing items widen the interval by what they could add to or take from each group's score, within `bounds`.
    """
    scored = [g for g in groups if g.score is not None]
    found = macro_average(
        np.array([g.score for g in scored], dtype=np.float64),
        np.array([math.nan if g.se is None else g.se for g in scored], dtype=np.float64),
    )
    if found.se is None or math.isnan(found.se) or found.ci is None:
        return Average(score=found.score, n=found.n, se=None, ci95=None, method=found.method)
    low, high = found.ci
    if bounds is not None:
        for g in scored:
            share = g.n_missing / (g.n + g.n_missing) / len(scored)
            low += share * (bounds[0] - (g.score or 0.0))
            high += share * (bounds[1] - (g.score or 0.0))
        low, high = max(low, bounds[0]), min(high, bounds[1])
    return Average(score=found.score, n=found.n, se=found.se, ci95=(low, high), method=found.method)
