"""The decontaminated companion of a score."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from eval_tasks.scoring.registry import MetricInfo
from eval_tasks.stats.companion import companion_of, difference_se
from eval_tasks.stats.intervals import wilson

ACC = MetricInfo()


def table(values, *, weights=None, clusters=None, status=None, metric="acc"):
    n = len(values)
    return pa.table(
        {
            "item_id": [f"i{k:04d}" for k in range(n)],
            "metric": [metric] * n,
            "value": pa.array(values, pa.float64()),
            "weight": pa.array(weights or [1.0] * n, pa.float64()),
            "status": status or ["ok" if v is not None else "missing" for v in values],
            "cluster": pa.array(clusters or [None] * n, pa.string()),
        }
    )


def statuses(*runs):
    names = [status for status, n in runs for _ in range(n)]
    return {f"i{k:04d}": status for k, status in enumerate(names)}


def test_companion_of_the_worked_example():
    # 58 of 60 contaminated and 745 of 940 clean items right (statistics.md; checked there by the bootstrap).
    scores = table([1.0] * 58 + [0.0] * 2 + [1.0] * 745 + [0.0] * 195)
    found = companion_of(
        scores, statuses(("contaminated", 60), ("clean", 940)), metric="acc", info=ACC, clustered=False
    )
    assert (found.n, found.n_contaminated, found.n_not_checkable) == (940, 60, 0)
    assert found.score == pytest.approx(0.7925531914893617)
    assert found.ci95 == pytest.approx(wilson(745, 940))
    assert found.difference == pytest.approx(0.010446808510638395)
    assert found.difference_se == pytest.approx(0.0016113465354011633)


def test_difference_error_of_the_oracle(oracle):
    case = oracle["decontaminated_companion"]
    dirty = np.array([1.0] * case["k_dirty"] + [0.0] * (case["n_dirty"] - case["k_dirty"]))
    clean = np.array([1.0] * case["k_clean"] + [0.0] * (case["n_clean"] - case["k_clean"]))
    assert difference_se(dirty, clean) == pytest.approx(case["se"], abs=1e-12)


def test_not_checkable_and_unknown_items_are_in_neither():
    scores = table([1.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    known = statuses(("clean", 3), ("contaminated", 1), ("not_checkable", 1))
    found = companion_of(scores, known, metric="acc", info=ACC, clustered=False)
    assert (found.n, found.n_contaminated, found.n_not_checkable) == (3, 1, 2)
    assert found.difference == pytest.approx(4 / 6 - 2 / 3)


def test_everything_clean_differs_by_nothing():
    found = companion_of(table([1.0, 0.0, 1.0]), statuses(("clean", 3)), metric="acc", info=ACC, clustered=False)
    assert (found.score, found.difference, found.difference_se) == (pytest.approx(2 / 3), 0.0, 0.0)


def test_nothing_clean_has_no_score():
    found = companion_of(table([1.0, 0.0]), statuses(("contaminated", 2)), metric="acc", info=ACC, clustered=False)
    assert (found.score, found.n, found.se, found.ci95, found.difference, found.difference_se) == (None, 0) + (
        None,
    ) * 4


def test_a_missing_clean_item_widens_the_companion():
    scores = table([1.0, 0.0, None, 1.0])
    found = companion_of(scores, statuses(("clean", 4)), metric="acc", info=ACC, clustered=False)
    assert found.n == 3 and found.ci95 == pytest.approx((wilson(2, 4)[0], wilson(3, 4)[1]))


def test_clustered_difference_is_what_the_plain_formula_gives_for_clusters_of_one():
    values = [1.0] * 20 + [0.0] * 10 + [1.0] * 40 + [0.0] * 30
    known = statuses(("contaminated", 30), ("clean", 70))
    plain = companion_of(table(values), known, metric="acc", info=ACC, clustered=False)
    alone = companion_of(table(values), known, metric="acc", info=ACC, clustered=True)
    assert alone.difference == pytest.approx(plain.difference)
    assert alone.difference_se == pytest.approx(plain.difference_se, rel=0.02)


def test_pooled_metric_keeps_its_weights():
    info = MetricInfo(binary=False, summary="pooled")
    scores = table([1.0, 0.5, 0.0, 1.0], weights=[1.0, 2.0, 3.0, 4.0])
    found = companion_of(scores, statuses(("clean", 2), ("contaminated", 2)), metric="acc", info=info, clustered=False)
    assert found.score == pytest.approx(2 / 3)
    assert found.difference == pytest.approx(6 / 10 - 2 / 3)
