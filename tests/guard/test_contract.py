"""The data contract, clause by clause."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from eval_tasks.guard.contract import check_rows, check_scores


def rows(*changes: dict[str, Any]) -> pa.Table:
    """One responses row per mapping, sound but for what it says."""
    whole = [{"item_id": f"i{n}", "status": "ok", "reason": "", "logprobs": [-1.0]} | c for n, c in enumerate(changes)]
    schema = pa.schema(
        {"item_id": pa.string(), "status": pa.string(), "reason": pa.string(), "logprobs": pa.list_(pa.float64())}
    )
    return pa.Table.from_pylist(whole, schema=schema)


def scores(*values: float | None, metric: str = "acc") -> pa.Table:
    schema = pa.schema({"item_id": pa.string(), "metric": pa.string(), "value": pa.float64()})
    return pa.Table.from_pylist(
        [{"item_id": f"i{n}", "metric": metric, "value": v} for n, v in enumerate(values)], schema=schema
    )


def broken(*arguments: Any, **keywords: Any) -> list[str]:
    return [breach.check for breach in check_rows(*arguments, **keywords)]


def test_sound_rows_break_nothing() -> None:
    invalid = {"status": "invalid", "reason": "non-finite logits", "logprobs": []}
    assert check_rows(rows({}, {}, invalid), 3) == []


@pytest.mark.parametrize("n_planned", [2, 4])
def test_the_count_is_that_of_the_plan(n_planned: int) -> None:
    (breach,) = check_rows(rows({}, {}, {}), n_planned)
    assert (breach.check, breach.observed, breach.expected) == ("row_count", "3 rows", f"{n_planned} rows")


def test_an_empty_table_passes_nothing() -> None:
    assert broken(rows(), 3) == ["row_count"]
    assert broken(rows(), 3, n_missing=3) == ["row_count"]
    assert broken(rows(), 0) == []


def test_missing_items_explain_absent_rows_and_no_more_than_those() -> None:
    assert broken(rows({}, {}), 3, n_missing=1) == []
    assert broken(rows({}, {}), 3, n_missing=2) == ["row_count"]
    assert broken(rows({}, {}), 2, n_missing=1) == ["row_count"]


def test_ids_are_unique() -> None:
    (breach,) = check_rows(rows({}, {"item_id": "i0"}), 2)
    assert (breach.check, breach.observed) == ("unique_ids", "1 distinct of 2")


def test_every_status_but_ok_has_a_reason() -> None:
    assert broken(rows({"status": "invalid"}, {"status": "ok", "reason": ""}), 2) == ["status_explained"]


@pytest.mark.parametrize("value", [math.nan, -math.inf, math.inf])
def test_logprobs_are_finite(value: float) -> None:
    (breach,) = check_rows(rows({"logprobs": [-1.0, value]}, {}), 2)
    assert (breach.check, breach.observed) == ("finite_logprobs", "1 not finite")


def test_each_item_has_one_score_of_each_metric() -> None:
    table = pa.concat_tables([scores(1.0, 0.0, 1.0), scores(1.0, 0.0, metric="acc_norm")])
    assert check_scores(table, metric="acc", unit="fraction", n_planned=3) == []
    (breach,) = check_scores(table, metric="acc_norm", unit="fraction", n_planned=3)
    assert (breach.check, breach.observed) == ("one_grader_row_per_item", "2 acc_norm rows")
    assert [b.check for b in check_scores(table, metric="other", unit="fraction", n_planned=3)] == [
        "one_grader_row_per_item"
    ]


@pytest.mark.parametrize(
    ("values", "sound"),
    [((0.0, 1.0), True), ((0.0, math.nextafter(1.0, 2.0)), False), ((-5e-324, 1.0), False), ((None, None), True)],
)
def test_fractions_lie_in_zero_to_one_inclusive(values: tuple[float | None, ...], sound: bool) -> None:
    found = check_scores(scores(*values), metric="acc", unit="fraction", n_planned=2)
    assert [breach.check for breach in found] == ([] if sound else ["score_range"])


def test_a_loss_has_no_range_of_its_own() -> None:
    assert check_scores(scores(0.0, 7.5, metric="bits"), metric="bits", unit="bits per byte", n_planned=2) == []
