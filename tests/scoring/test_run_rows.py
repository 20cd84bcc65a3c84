"""Items meet their stored responses in step, and what is out of step is an error."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eval_tasks.errors import DataError
from eval_tasks.scoring.run_rows import planned_items, score_run, stored_answers
from eval_tasks.store import Store
from tests.answered import answered, checkpoint

__all__ = ["answered", "checkpoint"]


def test_every_planned_item_comes_once_with_its_own_response(store: Store, answered: Callable[..., str]) -> None:
    run = store.catalog.run(answered())
    sums = store.catalog.benchmark("colour-sums")
    planned = planned_items(store, store.plan(run.plan_blob or ""))[sums.benchmark_id]
    pairs = list(stored_answers(store, run.run_id, sums, planned))
    assert [item.item_id for item, _ in pairs] == sorted(planned)
    assert all(item.item_id == response.item_id for item, response in pairs)


def test_a_planned_item_without_a_row_is_missing_where_it_belongs(store: Store, answered: Callable[..., str]) -> None:
    run_id = answered()
    choice = store.catalog.benchmark("colours")
    ids = sorted(item.item_id for item in store.blobs.get_items(choice.items_blob))
    absent = {ids[0], ids[3], ids[-1]}
    rows = [row for row in store.responses.rows(run_id, choice.benchmark_id) if row.item_id not in absent]
    result = store.responses.write_batch("thin", 0, 0, rows)
    store.responses.close("thin", {0: result})
    pairs = list(stored_answers(store, "thin", choice, ids))
    assert [item.item_id for item, _ in pairs] == ids
    assert {response.item_id for _, response in pairs if response.status == "missing"} == absent
    scores = [row for row in score_run(store, "thin", choice, ids) if row.metric == "acc"]
    assert {row.item_id for row in scores if row.value is None} == absent


@pytest.mark.parametrize("unplanned", ["c000", "c035", "c069"])
def test_a_row_that_was_not_planned_is_named(store: Store, answered: Callable[..., str], unplanned: str) -> None:
    run_id = answered()
    choice = store.catalog.benchmark("colours")
    planned = {item.item_id for item in store.blobs.get_items(choice.items_blob)} - {unplanned}
    with pytest.raises(DataError, match=f"row '{unplanned}' was not planned"):
        list(score_run(store, run_id, choice, planned))
