"""The regrading flow as Airflow sees it: its words, their order, and its form."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from airflow.sdk import DAG


@pytest.fixture(scope="module")
def dag(airflow_home: Path) -> DAG:
    from checkpoint_eval.regrade_flow import regrade_dag

    return regrade_dag(doc_md="x")


def test_the_order_is_that_of_the_flow(dag: DAG) -> None:
    groups = {f"{group}.{task}" for group in ("logprob", "generation") for task in ("pods", "run_shard")}
    chain = ["choose", "gate", "plan", "regrade", "aggregate", "join_contamination", "guard", "report"]
    assert set(dag.task_ids) == {*chain, *groups}
    for n, task_id in enumerate(chain):
        upstream = set(dag.get_task(task_id).get_flat_relative_ids(upstream=True))
        assert set(chain[:n]) <= upstream
    assert groups <= set(dag.get_task("regrade").get_flat_relative_ids(upstream=True))


def test_a_run_that_is_left_out_skips_all_and_empty_pod_groups_skip_nothing(dag: DAG) -> None:
    assert dag.get_task("regrade").trigger_rule == "none_failed_min_one_success"
    rules = {dag.get_task(t).trigger_rule for t in dag.task_ids if t != "regrade"}
    assert rules == {"all_success"}


def test_the_form_asks_for_a_grader_and_takes_no_other_tier(dag: DAG) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    assert dag.params["grader"] == "own"
    dag.params.validate()
    for name, value in (("grader", ""), ("tier", "nightly"), ("grader", None)):
        params = dag.params.__copy__()
        with pytest.raises(ParamValidationError):
            params.update({name: value})
            params.validate()
