"""Score tables for tests: arms of a benchmark from lists of values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from eval_tasks.compare import BenchmarkArms, Sides
from eval_tasks.records import DecisionRule
from eval_tasks.scoring.registry import MetricInfo

ACC = MetricInfo()
LOSS = MetricInfo(higher_is_better=False, unit="bits per byte", binary=False)
SIDES = Sides(run_a="run-a", run_b="run-b", label_a="new", label_b="old")


def table(
    values: Sequence[float | None],
    *,
    ids: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
    clusters: Sequence[str | None] | None = None,
    status: Sequence[str] | None = None,
) -> pa.Table:
    n = len(values)
    return pa.table(
        {
            "item_id": pa.array(ids or [f"i{k:05d}" for k in range(n)], pa.string()),
            "value": pa.array(values, pa.float64()),
            "weight": pa.array(weights or [1.0] * n, pa.float64()),
            "status": pa.array(status or ["missing" if v is None else "ok" for v in values], pa.string()),
            "cluster": pa.array(clusters or [None] * n, pa.string()),
        }
    )


def cells(both: int, b: int, c: int, neither: int) -> tuple[list[float | None], list[float | None]]:
    """Values of the two arms from a 2 x 2 table."""
    a_right = [1.0] * (both + b) + [0.0] * (c + neither)
    b_right = [1.0] * both + [0.0] * b + [1.0] * c + [0.0] * neither
    return list(a_right), list(b_right)


def arms(a: Any, b: Any, name: str = "bench", metric: str = "acc", **fields: Any) -> BenchmarkArms:
    """Arms from two lists of values, or two tables."""
    sides = [x if isinstance(x, pa.Table) else table(x) for x in (a, b)]
    return BenchmarkArms(benchmark=name, metric=metric, info=fields.pop("info", ACC), a=sides[0], b=sides[1], **fields)


def of_cells(both: int, b: int, c: int, neither: int, name: str = "bench", **fields: Any) -> BenchmarkArms:
    return arms(*cells(both, b, c, neither), name=name, **fields)


def rule(kind: Any = "superiority", **fields: Any) -> DecisionRule:
    defaults: dict[str, Any] = {"name": "ship", "metric": "acc", "components": {"bench": 1.0}}
    return DecisionRule(kind=kind, **(defaults | {"registered_at": "2026-01-01T00:00:00+00:00"} | fields))
