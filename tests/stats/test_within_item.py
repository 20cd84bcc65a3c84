"""The spread of samples within items, and its part of the standard error."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from eval_tasks.errors import DataError
from eval_tasks.records import WithinItem
from eval_tasks.scoring import MetricInfo
from eval_tasks.stats.item_scores import item_scores, measured
from eval_tasks.stats.within_item import within_item

SHARE = MetricInfo(binary=False)


def table(samples: list[list[float] | None], weights: list[float] | None = None) -> pa.Table:
    values = [0.0 if s is None else sum(s) / len(s) for s in samples]
    return pa.table(
        {
            "item_id": pa.array([f"i{n}" for n in range(len(samples))], pa.string()),
            "value": pa.array(values, pa.float64()),
            "weight": pa.array(weights or [1.0] * len(samples), pa.float64()),
            "status": pa.array(["ok"] * len(samples), pa.string()),
            "cluster": pa.array([None] * len(samples), pa.string()),
            "sample_values": pa.array(samples, pa.list_(pa.float64())),
        }
    )


def test_two_items_by_hand() -> None:
    found = within_item(table([[1.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0]]), SHARE, n_samples=4)
    variance = (1 / 3 + 0) / 2
    assert found.n_samples == 4
    assert found.variance == pytest.approx(variance)
    assert found.se == pytest.approx(math.sqrt(variance / 4 / 2))


def test_pooled_items_weigh_by_their_weights() -> None:
    pooled = MetricInfo(binary=False, summary="pooled")
    found = within_item(table([[1.0, 0.0], [0.0, 0.0], [1.0, 0.0]], [3.0, 2.0, 1.0]), pooled, n_samples=2)
    assert found.variance == pytest.approx((0.5 + 0 + 0.5) / 3)
    assert found.se == pytest.approx(math.sqrt((3 / 6) ** 2 * 0.5 / 2 + (1 / 6) ** 2 * 0.5 / 2))


def test_what_is_not_known_is_none() -> None:
    for rows, n in ((table([[1.0], [0.0]]), 1), (table([None, None]), 4), (table([]), 4)):
        assert within_item(rows, SHARE, n_samples=n) == WithinItem(n_samples=n)


def test_an_item_without_samples_adds_no_spread_but_counts_as_an_item() -> None:
    alone = within_item(table([[1.0, 0.0]]), SHARE, n_samples=2)
    beside = within_item(table([[1.0, 0.0], None]), SHARE, n_samples=2)
    assert beside.variance == alone.variance
    assert alone.se is not None and beside.se == pytest.approx(alone.se / 2)


def test_another_number_of_samples_is_named() -> None:
    with pytest.raises(DataError, match="item 'i1' has 1 sample values, not 2"):
        within_item(table([[1.0, 0.0], [1.0]]), SHARE, n_samples=2)


def test_the_parts_are_those_of_a_simulation() -> None:
    """Items differ with variance 1/12, samples within them by p (1 - p), 1/6 on average: both parts are found."""
    draw = np.random.Generator(np.random.PCG64(5))
    k, n = 4, 4000
    p = draw.random(n)
    values = (draw.random((n, k)) < p[:, None]).astype(float)
    rows = table([list(v) for v in values])
    found = within_item(rows, SHARE, n_samples=k)
    total = measured(item_scores(rows, SHARE, clustered=False), SHARE, n_missing=0)
    assert found.variance == pytest.approx(1 / 6, rel=0.05)
    assert found.se is not None and total.se is not None
    assert total.se**2 * n == pytest.approx(1 / 12 + 1 / 6 / k, rel=0.05)
    assert (total.se**2 - found.se**2) * n == pytest.approx(1 / 12, rel=0.08)
