"""Scores of a run become one table, whatever order they come in and however many chunks they fill."""

from __future__ import annotations

import random

import pytest

from eval_tasks.errors import DataError
from eval_tasks.store import score_rows
from eval_tasks.store.identity import rows_digest, score_digest
from eval_tasks.store.score_rows import score_table
from tests.store.samples import BENCHMARK_ID, score


def test_any_order_and_any_chunk_gives_the_same_table_and_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [score(f"q{n:02d}", metric=metric) for n in range(25) for metric in ("acc", "acc_norm")]
    expected = sorted(rows, key=lambda row: (row.metric, row.item_id))
    table, digest = score_table("run", BENCHMARK_ID, rows)
    assert digest == rows_digest(score_digest(row) for row in expected)
    assert table.select(["metric", "item_id"]).to_pylist() == [
        {"metric": row.metric, "item_id": row.item_id} for row in expected
    ]
    monkeypatch.setattr(score_rows, "ROW_GROUP_ROWS", 7)
    random.Random(0).shuffle(rows)
    again, same = score_table("run", BENCHMARK_ID, rows)
    assert same == digest
    assert again.equals(table)


def test_text_that_no_file_can_hold_is_mended_before_it_is_digested() -> None:
    table, digest = score_table("run", BENCHMARK_ID, [score("a", extracted="\ud800x", value=float("nan"))])
    assert (table["extracted"].to_pylist(), table["value"].to_pylist()) == (["\ufffdx"], [None])
    assert digest == score_table("run", BENCHMARK_ID, [score("a", extracted="\ufffdx", value=None)])[1]


def test_two_scores_of_an_item_are_refused_wherever_they_stand() -> None:
    rows = [score("a"), score("b"), score("c"), score("a")]
    with pytest.raises(DataError, match="two scores 'acc' for item 'a'"):
        score_table("run", BENCHMARK_ID, rows)


def test_no_rows_are_an_empty_table() -> None:
    table, _ = score_table("run", BENCHMARK_ID, [])
    assert table.num_rows == 0
