"""A score table as arrays."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eval_tasks.errors import DataError
from eval_tasks.scoring.registry import MetricInfo
from eval_tasks.stats.item_scores import cluster_codes, item_scores, metric_rows


def rows(values, status=None, ids=None, weights=None):
    n = len(values)
    return pa.table(
        {
            "item_id": ids or [f"i{k}" for k in range(n)],
            "metric": ["acc"] * n,
            "value": pa.array(values, pa.float64()),
            "weight": pa.array(weights or [1.0] * n, pa.float64()),
            "status": status or ["ok"] * n,
            "cluster": pa.array([None] * n, pa.string()),
        }
    )


def test_statuses_decide_who_counts():
    table = rows([1.0, 0.0, None, None, None], ["ok", "invalid", "missing", "excluded", "invalid"])
    items = item_scores(table, MetricInfo(), clustered=False)
    assert items.values.tolist() == [1.0, 0.0]
    assert items.n_missing == 2, "the lost item, and the invalid one that its metric gives no value"
    assert items.excluded.sum() == 1 and items.invalid.sum() == 2


def test_weights_matter_only_where_the_metric_is_pooled():
    table = rows([1.0, 0.0], weights=[1.0, 5.0])
    assert item_scores(table, MetricInfo(), clustered=False).weights is None
    assert item_scores(table, MetricInfo(summary="pooled"), clustered=False).weights.tolist() == [1.0, 5.0]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_value_that_is_no_number_names_its_item(value):
    with pytest.raises(DataError, match="item 'i1' has the value"):
        item_scores(rows([1.0, value]), MetricInfo(), clustered=False)


def test_a_negative_weight_names_its_item():
    with pytest.raises(DataError, match=r"item 'i0' has the weight -1\.0"):
        item_scores(rows([1.0, 0.0], weights=[-1.0, 1.0]), MetricInfo(), clustered=False)


def test_two_scores_of_one_item_are_an_error():
    with pytest.raises(DataError, match="'twice' is one"):
        item_scores(rows([1.0, 0.0, 1.0], ids=["twice", "once", "twice"]), MetricInfo(), clustered=False)


def test_an_item_without_a_cluster_is_its_own():
    codes = cluster_codes(pa.chunked_array([["p", None, "p"], [None, "q"]]))
    assert len(set(codes.tolist())) == 4 and codes[0] == codes[2]


def test_rows_of_one_metric():
    assert metric_rows(rows([1.0]), "acc").num_rows == 1 and metric_rows(rows([1.0]), "other").num_rows == 0
