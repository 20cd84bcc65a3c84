"""Asking a person about a block: what is shown, what is taken, what is asked again, and what was said elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest

from eval_tasks.records import RowDifference
from eval_tasks.records.determinism import BlockKind, BlockOutcome
from eval_tasks.settings import Settings
from eval_tasks.store import Store, open_store
from tests.planned import NOW

if TYPE_CHECKING:
    from checkpoint_eval.block_operator import ExplainBlockOperator

Asked = dict[str, Any]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("CHECKPOINT_EVAL_HOME", str(tmp_path / "home"))
    for name in ("STORE_URI", "CATALOG_URL", "CONFIG"):
        monkeypatch.delenv(f"CHECKPOINT_EVAL_{name}", raising=False)
    with open_store(Settings()) as store:
        yield store


@pytest.fixture
def asked(airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> list[Asked]:
    """What Airflow is told to ask; asking parks the task, which ends `execute` by an exception."""
    from airflow.providers.standard.operators import hitl

    told: list[Asked] = []
    monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **detail: told.append(detail))
    return told


def opened(store: Store, kind: BlockKind = "rows_changed") -> str:
    difference = RowDifference(benchmark="colours", item_id="c003", field="output", a="'red'", b="'blue'")
    return store.catalog.open_block(
        "f" * 64,
        "1 of 9 items have other rows",
        NOW,
        kind=kind,
        environment="h100",
        nodes=["gpu-17"],
        first=[difference],
    )


def operator(block_id: str) -> ExplainBlockOperator:
    from checkpoint_eval.block_operator import ExplainBlockOperator

    return ExplainBlockOperator(task_id="ask", block_id=block_id)


def answer(outcome: str = "baseline kept", by: str | None = "ann", **form: Any) -> dict[str, Any]:
    user = None if by is None else {"id": "1", "name": by}
    return {
        "chosen_options": [outcome],
        "params_input": form,
        "responded_at": datetime(2026, 1, 1, tzinfo=UTC),
        "responded_by_user": user,
        "timedout": False,
    }


def parks(call: Callable[[], Any]) -> None:
    from airflow.sdk.exceptions import TaskAwaitingInput

    with pytest.raises(TaskAwaitingInput):
        call()


@pytest.fixture
def context() -> Any:
    class Instance:
        id = "a-task-instance"

    return {"task_instance": Instance()}


def test_the_outcomes_are_the_librarys(airflow_home: Path) -> None:
    from checkpoint_eval.block_operator import OUTCOMES

    assert get_args(BlockOutcome) == OUTCOMES


def test_a_person_is_shown_both_values_the_node_and_what_may_be_said(
    home: Store, asked: list[Asked], context: Any
) -> None:
    parks(lambda: operator(opened(home)).execute(context))
    (detail,) = asked
    for part in ("h100", "rows_changed", "gpu-17", "colours c003 output: 'red' -> 'blue'", "1 of 9 items"):
        assert part in detail["body"]
    assert detail["options"] == ["baseline kept", "baseline adopted", "runs suspect"]
    assert set(detail["params"]) == {"reason"}


def test_rows_are_offered_for_adoption_only_where_there_are_any(home: Store, asked: list[Asked], context: Any) -> None:
    parks(lambda: operator(opened(home, "engine_variance")).execute(context))
    assert asked[0]["options"] == ["baseline kept", "runs suspect"]
    assert "baseline adopted" not in asked[0]["body"]


def test_an_answer_is_recorded_under_its_name_and_lifts_the_block(
    home: Store, asked: list[Asked], context: Any
) -> None:
    block_id = opened(home)
    said = operator(block_id).execute_complete(context, answer(reason=" ECC errors; drained "))
    assert said == "ann: baseline kept: ECC errors; drained"
    block = home.catalog.block(block_id)
    assert (block.explained_by, block.explanation, block.outcome) == ("ann", "ECC errors; drained", "baseline kept")
    assert home.catalog.open_blocks() == [] and asked == []


@pytest.mark.parametrize(
    "bad",
    [
        answer(),
        answer(reason=""),
        answer(reason="   "),
        answer("no such outcome", reason="x"),
        answer("baseline adopted", reason="there are no rows to adopt"),
        answer(by=None, reason="x"),
        answer(reason="x", further="y"),
        answer(reason=7),
    ],
)
def test_what_is_no_answer_changes_nothing_and_is_asked_again(
    home: Store, asked: list[Asked], context: Any, bad: dict[str, Any]
) -> None:
    block_id = opened(home, "sentinels")
    parks(lambda: operator(block_id).execute_complete(context, bad))
    assert len(asked) == 1
    assert home.catalog.block(block_id).explained_at is None


def test_of_two_people_the_second_is_told_who_did(home: Store, asked: list[Asked], context: Any) -> None:
    block_id = opened(home)
    home.catalog.explain_block(block_id, "bob", "a cable", NOW, "runs suspect")
    said = operator(block_id).execute_complete(context, answer(reason="cosmic rays"))
    assert said == "bob: runs suspect: a cable"
    assert home.catalog.block(block_id).explanation == "a cable" and asked == []


def test_the_wait_ends_when_it_was_explained_elsewhere_and_goes_on_otherwise(
    home: Store, asked: list[Asked], context: Any
) -> None:
    block_id = opened(home)
    timeout = {"error": "The timeout has passed", "error_type": "timeout"}
    parks(lambda: operator(block_id).execute_complete(context, timeout))
    assert len(asked) == 1
    home.catalog.explain_block(block_id, "bob", "a cable", NOW)
    assert operator(block_id).execute_complete(context, timeout).startswith("bob: ")
    assert operator(block_id).execute(context).startswith("bob: ")


def test_a_block_that_is_not_there_fails_for_good(home: Store, asked: list[Asked], context: Any) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="no block 'nope'"):
        operator("nope").execute(context)
