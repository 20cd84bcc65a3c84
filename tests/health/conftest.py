"""A training run in a real store: looks from lists of values, graded by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from eval_tasks.aggregate import aggregate
from eval_tasks.health import health
from eval_tasks.records import BenchmarkVersion, HealthLook, Item, PromptTemplate, Score, ScorerRef
from eval_tasks.store import Store
from tests.compare.stored import stored_run
from tests.store import samples

NOW = samples.NOW


def benchmark(store: Store, name: str, n: int, **changes: Any) -> BenchmarkVersion:
    """A benchmark of n items whose categories alternate between prose and code."""
    items = [
        Item(item_id=f"i{k:04d}", fields={"text": f"text {k}", "question": f"{k}?"}, target=0, metadata=_category(k))
        for k in range(n)
    ]
    kind = changes.pop("kind", "loss")
    template = PromptTemplate(item="{{ text }}") if kind == "loss" else PromptTemplate(item="?", choices=("A", "B"))
    return samples.benchmark(
        name=name,
        kind=kind,
        n_items=n,
        items_blob=store.blobs.put_items(items),
        items_digest=f"{name:i<64}",
        template=template,
        scorer=ScorerRef(name="loss" if kind == "loss" else "choice", version="1"),
        primary_metric="bits_per_byte" if kind == "loss" else "acc",
        plausible_range={},
        **changes,
    )


def _category(k: int) -> dict[str, str]:
    return {"category": "code" if k % 2 else "prose"}


def rows(version: BenchmarkVersion, values: Sequence[float], answers: Sequence[str] | None = None) -> list[Score]:
    metric = version.primary_metric
    given = answers or [None] * len(values)
    return [
        Score(benchmark_id=version.benchmark_id, item_id=f"i{k:04d}", metric=metric, value=float(v), extracted=answer)
        for k, (v, answer) in enumerate(zip(values, given, strict=True))
    ]


Taken = Callable[..., HealthLook]


@pytest.fixture
def take(store: Store) -> Taken:
    """`take(step, (benchmark, rows), ...)`: a closed, measured run of training run `tiny` at a step, and its look."""
    numbers = iter(range(1, 10_000))

    def taken(step: int, *scored: tuple[BenchmarkVersion, Sequence[Score]], **changes: Any) -> HealthLook:
        run = stored_run(store, next(numbers), *scored, **changes)
        store.catalog.update_run(run.run_id, step=step, status="closed")
        aggregate(store, run.run_id)
        return health(store, run_id=run.run_id, now=NOW)

    return taken


def quarantine(store: Store, run_id: str) -> None:
    store.catalog.change_measurements(
        run_id, lambda stored: [replace(m, quarantined=True, quarantine_reason="a test said so") for m in stored]
    )
