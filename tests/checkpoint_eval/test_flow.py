"""The flow as Airflow sees it: its words, their order, its form, and which errors are tried again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from eval_tasks import errors

if TYPE_CHECKING:
    from airflow.sdk import DAG

TIERS = ("health", "selection", "release")
WORDS = [
    "gate",
    "resolve",
    "plan",
    "logprob.pods",
    "logprob.run_shard",
    "generation.pods",
    "generation.run_shard",
    "grade",
    "blocks",
    "ask_about_blocks",
    "aggregate",
    "join_contamination",
    "guard",
    "compare",
    "publish",
]


@pytest.fixture(scope="module")
def flows(airflow_home: Any) -> dict[str, DAG]:
    from checkpoint_eval.flow import evaluation_dag

    return {tier: evaluation_dag(tier, doc_md="x") for tier in TIERS}


@pytest.mark.parametrize("tier", TIERS)
def test_tasks_are_the_flows_words_and_only_a_release_is_approved(flows: dict[str, DAG], tier: str) -> None:
    wanted = set(WORDS) | {"release": {"power", "approve"}, "health": {"health"}, "selection": {"select"}}.get(
        tier, set()
    )
    assert set(flows[tier].task_ids) == wanted
    assert flows[tier].dag_id == f"evaluate_{tier}"


@pytest.mark.parametrize("tier", TIERS)
def test_the_order_is_that_of_the_flow(flows: dict[str, DAG], tier: str) -> None:
    dag = flows[tier]
    groups = ["logprob.run_shard", "generation.run_shard"]
    chain = ["gate", "resolve", "plan", *groups, "grade", "aggregate", "join_contamination", "guard", "compare"]
    for task_id, earlier in (("publish", [*chain]), ("grade", ["gate", "resolve", "plan", *groups])):
        upstream = set(dag.get_task(task_id).get_flat_relative_ids(upstream=True))
        assert set(earlier) <= upstream, task_id
    assert "logprob.run_shard" not in dag.get_task("generation.run_shard").get_flat_relative_ids(upstream=True)
    assert dag.get_task("gate").upstream_task_ids == set()


def test_no_pod_starts_before_a_release_is_approved(flows: dict[str, DAG]) -> None:
    for group in ("logprob", "generation"):
        assert "approve" in flows["release"].get_task(f"{group}.run_shard").get_flat_relative_ids(upstream=True)
    assert {"plan", "power"} <= flows["release"].get_task("approve").get_flat_relative_ids(upstream=True)
    assert "xcom_pull(task_ids='power')" in flows["release"].get_task("approve").body


def test_a_rejected_release_computes_and_publishes_nothing(flows: dict[str, DAG]) -> None:
    from airflow.sdk.exceptions import DownstreamTasksSkipped

    approve = flows["release"].get_task("approve")
    answer = {
        "chosen_options": ["Reject"],
        "params_input": {},
        "responded_at": datetime(2026, 1, 1, tzinfo=UTC),
        "responded_by_user": {"id": "1", "name": "admin"},
    }
    instance = SimpleNamespace(map_index=-1, xcom_push=lambda **_: None)
    with pytest.raises(DownstreamTasksSkipped) as skipped:
        approve.execute_complete({"task": approve, "ti": instance}, answer)
    assert set(skipped.value.tasks) == set(WORDS) - {"gate", "resolve", "plan"}


@pytest.mark.parametrize(
    ("state", "try_number", "waits"),
    [
        ("running", 1, True),
        ("running", 1000, True),
        ("queued", 1, True),
        ("queued", 31, False),
        ("failed", 1, False),
        ("success", 1, False),
    ],
)
def test_a_baseline_is_waited_for_as_long_as_it_is_evaluated(
    airflow_home: Any, state: str, try_number: int, waits: bool
) -> None:
    from checkpoint_eval.flow import _may_come

    asked = []

    def get_dagrun_state(**which: str) -> str:
        asked.append(which)
        return state

    instance = SimpleNamespace(get_dagrun_state=get_dagrun_state, try_number=try_number)
    assert _may_come(instance, "evaluate_health", "health__tiny__1__abc") == waits
    assert asked == [{"dag_id": "evaluate_health", "run_id": "health__tiny__1__abc"}]
    assert not _may_come(instance, "evaluate_health", "")


@pytest.mark.parametrize("tier", TIERS)
def test_every_task_has_an_owner_and_says_what_it_does(flows: dict[str, DAG], tier: str) -> None:
    from checkpoint_eval.flow import OWNER, POOLS, TAGS

    dag = flows[tier]
    assert set(dag.tags) <= TAGS
    for task in dag.tasks:
        assert task.owner == OWNER
        assert task.retries >= 2
        if not task.task_id.endswith(("run_shard", "approve", "gate")):
            assert task.doc_md, task.task_id
    for group, pool in POOLS.items():
        assert dag.get_task(f"{group}.run_shard").partial_kwargs["pool"] == pool


def test_a_waiting_run_takes_no_worker_slot(flows: dict[str, DAG]) -> None:
    gate = flows["health"].get_task("gate")
    assert (gate.mode, gate.timeout) == ("reschedule", 14 * 24 * 3600)
    assert flows["health"].get_task("logprob.run_shard").partial_kwargs["deferrable"] is True


def test_a_shard_that_was_lost_is_found_by_grade_and_not_by_a_task_state(flows: dict[str, DAG]) -> None:
    assert flows["health"].get_task("grade").trigger_rule == "none_failed"
    for word in ("aggregate", "join_contamination", "guard", "compare", "publish"):
        assert flows["health"].get_task(word).trigger_rule == "all_success"


def test_the_form_of_a_release_asks_for_everything_in_words(flows: dict[str, DAG]) -> None:
    form = flows["release"].params
    assert {"checkpoint_uri", "baseline", "suite", "seeds", "rule", "notes"} <= set(form)
    for name in form:
        schema = form.get_param(name).schema
        assert schema.get("title"), name
        assert form.get_param(name).description or schema.get("description"), name
    assert form.get_param("notes").schema["format"] == "multiline"
    assert form.get_param("seeds").schema["items"] == {"type": "string"}


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", ["checkpoint_uri", "suite"])
def test_the_form_refuses_an_empty_question(flows: dict[str, DAG], tier: str, name: str) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    with pytest.raises(ParamValidationError):
        flows[tier].params.get_param(name).resolve("")


@pytest.mark.parametrize("tier", ["health", "selection"])
def test_the_watchers_conf_fits_the_parameters(flows: dict[str, DAG], tier: str) -> None:
    params = flows[tier].params
    assert {"seeds", "notes"} & set(params) == set()
    conf = {
        "checkpoint_uri": "s3://bucket/tiny/step-10",
        "training_run": "tiny",
        "step": 10,
        "suite": "s",
        "baseline": "previous",
        "rule": None,
        "environment": None,
        "landing_id": "f" * 32,
    }
    for name, value in conf.items():
        assert params.get_param(name).resolve(value) == value


@pytest.mark.parametrize("name", ["UserError", "DataError", "DriftError", "NotComparableError", "BlockedError"])
def test_what_a_person_must_act_on_is_not_tried_again(airflow_home: Any, name: str) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from checkpoint_eval.flow import airflow_errors

    with pytest.raises(AirflowFailException, match=f"^{name}: the suite is gone$"), airflow_errors():
        raise getattr(errors, name)("the suite is gone")


@pytest.mark.parametrize("error", [errors.InfraError("store away"), KeyError("a bug"), OSError("disk")])
def test_what_may_pass_is_tried_again(airflow_home: Any, error: Exception) -> None:
    from checkpoint_eval.flow import airflow_errors

    with pytest.raises(type(error)) as caught, airflow_errors():
        raise error
    assert caught.value is error


def test_a_corrupt_checkpoint_ends_its_task_at_the_first_try(
    run_dag: Callable[..., Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through Airflow, with its retries: one try, one alert, and nothing after it runs."""
    from checkpoint_eval.flow import evaluation_dag
    from eval_tasks.settings import Settings
    from eval_tasks.store import open_store
    from tests.planned import register

    monkeypatch.setenv("CHECKPOINT_EVAL_HOME", str(tmp_path / "home"))
    with open_store(Settings()) as store:
        register(store, tmp_path / "benchmarks")
    (tmp_path / "step-1").mkdir()
    (tmp_path / "step-1" / "config.json").write_text("{}")
    dag = evaluation_dag("health", doc_md="x")
    run = run_dag(dag, run_conf={"checkpoint_uri": str(tmp_path / "step-1"), "suite": "colours-all"})
    states = {ti.task_id: (str(ti.state), ti.try_number) for ti in run.get_task_instances()}
    assert run.state == "failed"
    assert states["gate"][0] == "success"
    assert states["resolve"] == ("failed", 1)
    assert {states[word][0] for word in ("plan", "grade", "publish")} == {"upstream_failed"}
    with open_store(Settings()) as store:
        (alert,) = store.catalog.alerts()
    assert alert.kind == "corrupt_checkpoint"
