"""The nightly check as Airflow sees it: its words, their order, and which failures stop what."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from airflow.sdk import DAG

PODS = {"logprob.run_shard", "generation.run_shard", "sentinels.try_sentinels"}


@pytest.fixture(scope="module")
def dag(airflow_home: Path) -> DAG:
    from checkpoint_eval.nightly_flow import nightly_dag

    return nightly_dag(doc_md="x")


def upstream(dag: DAG, task_id: str) -> set[str]:
    return set(dag.get_task(task_id).get_flat_relative_ids(upstream=True))


def test_every_pod_is_waited_for_before_a_night_is_judged(dag: DAG) -> None:
    assert PODS | {"configured", "plan", "runs"} <= upstream(dag, "judge")
    assert "judge" in upstream(dag, "verdict") and "judge" in upstream(dag, "ask_about_blocks")
    assert not {"verdict", "ask_about_blocks"} & upstream(dag, "judge")


def test_pods_that_fail_leave_the_judging_of_other_environments_to_be_done(dag: DAG) -> None:
    assert {dag.get_task(t).trigger_rule for t in ("judge", "verdict", "blocks")} == {"all_done"}
    assert {dag.get_task(t).trigger_rule for t in PODS} == {"all_success"}


def test_no_gate_holds_a_night_and_a_bad_one_is_told_once(dag: DAG) -> None:
    assert "gate" not in dag.task_ids
    assert dag.get_task("verdict").partial_kwargs["on_failure_callback"] in (None, [], ())
    assert dag.get_task("judge").partial_kwargs["on_failure_callback"]
    assert (dag.max_active_runs, dag.catchup) == (1, False)
