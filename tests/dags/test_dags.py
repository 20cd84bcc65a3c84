"""The shipped DAGs: all load, each has an owner, tags of a closed set and a runbook; parsing is light; one runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.checkpoint_eval.conftest import pod_server

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun
    from airflow.sdk import DAG

    from tests.checkpoint_eval.conftest import PodServer

__all__ = ["pod_server"]

_FILES = sorted((Path(__file__).parents[2] / "dags").glob("*.py"))
_NAMES = [file.stem for file in _FILES]
_HEAVY = ("torch", "transformers", "pandas", "pyarrow", "great_expectations", "scipy", "matplotlib", "statsmodels")


@pytest.fixture(scope="module")
def dags(airflow_db: Path, dags_folder: Path) -> dict[str, DAG]:
    """Every shipped DAG by its id."""
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(dag_folder=str(dags_folder))
    assert bag.import_errors == {}
    return dict(bag.dags)


def test_each_file_holds_the_dag_of_its_name(dags: dict[str, DAG]) -> None:
    assert sorted(dags) == _NAMES


@pytest.mark.parametrize("name", _NAMES)
def test_a_dag_has_an_owner_tags_of_the_closed_set_and_a_runbook(dags: dict[str, DAG], name: str) -> None:
    from checkpoint_eval.flow import OWNER, TAGS

    dag = dags[name]
    assert dag.owner == OWNER
    assert "checkpoint-eval" in dag.tags and set(dag.tags) <= TAGS
    assert dag.doc_md is not None and dag.doc_md.startswith(f"### {name}: ")
    for part in ("**When it fails.**", "**Whom it hurts.**"):
        assert part in dag.doc_md
    assert dag.description


@pytest.mark.parametrize("name", _NAMES)
def test_a_runbook_names_only_tasks_and_dags_that_exist(dags: dict[str, DAG], name: str) -> None:
    words = {task_id.rsplit(".")[-1] for dag in dags.values() for task_id in dag.task_ids} | set(dags)
    named = set(re.findall(r"`([a-z_]+)`", dags[name].doc_md or ""))
    assert named and named <= words


def test_the_release_form_says_what_items_and_seeds_can_find(dags: dict[str, DAG]) -> None:
    """Its table and its sentence are what the formulas give."""
    from eval_tasks.stats.planning import seeds_mde
    from eval_tasks.stats.power import paired_mde

    doc = dags["evaluate_release"].doc_md or ""
    rows = re.findall(r"^\| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", doc, re.MULTILINE)
    assert len(rows) == 5
    for items, *points in rows:
        n = int(items.replace(",", ""))
        assert points == [f"{100 * paired_mde(n, psi):.2f}" for psi in (0.02, 0.05, 0.1, 0.2)]
    shown = [f"{100 * seeds_mde(k, 0.006):.2f}" for k in (2, 3, 5, 10)]
    assert f"show {', '.join(shown[:3])} and {shown[3]} points" in doc


@pytest.mark.parametrize("name", _NAMES)
def test_nothing_is_done_or_loaded_while_a_file_is_parsed(airflow_home: Path, dags_folder: Path, name: str) -> None:
    program = (
        "import runpy, socket, sys\n"
        f"sys.path[:0] = [{str(dags_folder.parent)!r}, {str(dags_folder.parent / 'plugins')!r}]\n"
        "import airflow.sdk, airflow.providers.cncf.kubernetes.operators.pod\n"
        "def refuse(*arguments, **keywords): raise AssertionError('a connection while a file is parsed')\n"
        "socket.socket.connect = refuse\n"
        "before = set(sys.modules)\n"
        f"runpy.run_path({str(dags_folder / name)!r} + '.py')\n"
        f"print(*sorted({{m.split('.')[0] for m in sys.modules}} & set({_HEAVY!r})))\n"
        "print(*sorted(m for m in set(sys.modules) - before if m.startswith('eval_tasks')))\n"
    )
    environment = os.environ | {"CHECKPOINT_EVAL_HOME": str(airflow_home / "never-made")}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    heavy, library = done.stdout.splitlines()[-2:]  # before them may stand warnings that Airflow prints
    assert heavy == ""
    known = {"eval_tasks", *(f"eval_tasks.{name}" for name in ("settings", "placement", "policies", "errors"))}
    assert set(library.split()) <= known
    assert not (airflow_home / "never-made").exists()


@pytest.mark.full
def test_a_health_evaluation_runs_from_gate_to_publish_on_real_pods(
    dags: dict[str, DAG],
    run_dag: Callable[..., DagRun],
    pod_server: PodServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The shipped DAG and the real operator on the local pod API; a second run finds everything done."""
    from eval_tasks.settings import Settings
    from eval_tasks.store import open_store
    from tests.planned import register, write_checkpoint

    monkeypatch.setenv("CHECKPOINT_EVAL_HOME", str(tmp_path / "home"))
    connection = {"conn_type": "kubernetes", "extra": {"kube_config_path": str(pod_server.kubeconfig)}}
    monkeypatch.setenv("AIRFLOW_CONN_KUBERNETES_DEFAULT", json.dumps(connection))
    with open_store(Settings()) as store:
        register(store, tmp_path / "benchmarks")
    dag = dags["evaluate_health"]
    # `dag.test()` keeps no deadline apart from its DAG, as the scheduler does, and fails to find it.
    monkeypatch.setattr(dag, "deadline", None)
    for task in dag.tasks:
        arguments = getattr(task, "partial_kwargs", None)
        if arguments is None:
            task.retry_delay = timedelta(0)
        else:
            arguments |= {"retry_delay": timedelta(0), "poll_interval": 0.5, "logging_interval": 1}
    checkpoint = write_checkpoint(tmp_path / "step-5")
    conf: dict[str, Any] = {"checkpoint_uri": str(checkpoint), "training_run": "tiny", "suite": "colours-all"}

    first = run_dag(dag, run_conf=conf)
    assert first.state == "success"
    assert _states(first) == {task_id: {"success"} for task_id in dag.task_ids} | {
        "ask_about_blocks": {"skipped"}  # no block, nobody to ask
    }
    with open_store(Settings()) as store:
        (run,) = store.catalog.runs()
        assert (run.status, run.training_run, run.step) == ("closed", "tiny", 5)
        assert {row.status for row in store.catalog.shards(run.run_id)} == {"done"}
        reports = store.catalog.reports(run.run_id)
        assert {report.format for report in reports} == {"html", "json"}
        assert len(store.catalog.measurements(run.run_id)) > 3
        rows = store.responses.run_rows_digest(run.run_id)

    second = run_dag(dag, run_conf=conf)
    assert second.state == "success"
    assert _states(second)["logprob.run_shard"] == {"skipped"}
    assert _states(second)["publish"] == {"success"}
    with open_store(Settings()) as store:
        assert [r.run_id for r in store.catalog.runs()] == [run.run_id]
        assert store.responses.run_rows_digest(run.run_id) == rows


@pytest.mark.full
def test_a_regrading_runs_a_judge_on_real_pods_and_the_evaluated_model_never(
    dags: dict[str, DAG],
    run_dag: Callable[..., DagRun],
    pod_server: PodServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A judge's questions on the local pod API; a second run finds everything done, and a scorer needs no pod."""
    from eval_tasks.grade import grade
    from eval_tasks.settings import Settings
    from eval_tasks.store import open_store
    from tests.answered import answer_by_hand
    from tests.graders.judged import register as register_judge
    from tests.graders.judged import write_judge
    from tests.planned import planned, register, write_checkpoint

    monkeypatch.setenv("CHECKPOINT_EVAL_HOME", str(tmp_path / "home"))
    connection = {"conn_type": "kubernetes", "extra": {"kube_config_path": str(pod_server.kubeconfig)}}
    monkeypatch.setenv("AIRFLOW_CONN_KUBERNETES_DEFAULT", json.dumps(connection))
    with open_store(Settings()) as store:
        register(store, tmp_path / "benchmarks")
        made = planned(store, write_checkpoint(tmp_path / "step-5"))
        answer_by_hand(store, made)
        grade(store, run_id=made.run_id)
        judge = register_judge(store, write_judge(tmp_path, write_checkpoint(tmp_path / "judge", seed=7))).grader
        rows = store.responses.run_rows_digest(made.run_id)
    dag = dags["regrade"]
    for task in dag.tasks:
        arguments = getattr(task, "partial_kwargs", None)
        if arguments is None:
            task.retry_delay = timedelta(0)
        else:
            arguments |= {"retry_delay": timedelta(0), "poll_interval": 0.5, "logging_interval": 1}

    first = run_dag(dag, run_conf={"grader": "helpful", "run": made.run_id})
    assert first.state == "success"
    skipped = {task for task, states in _states(first).items() if states != {"success"}}
    assert skipped == {"generation.run_shard"}
    second = run_dag(dag, run_conf={"grader": "helpful", "run": made.run_id})
    assert second.state == "success"
    assert _states(second)["logprob.run_shard"] == {"skipped"} and _states(second)["report"] == {"success"}
    left_out = run_dag(dag, run_conf={"grader": "helpful", "run": made.run_id, "tier": "health"})
    assert set.union(*_states(left_out).values()) == {"skipped"}
    with open_store(Settings()) as store:
        assert [run.run_id for run in store.catalog.runs()] == [made.run_id]
        assert [run.judging.grader for run in store.catalog.runs(judging=True) if run.judging] == [judge]
        assert store.responses.run_rows_digest(made.run_id) == rows
        benchmark = store.catalog.benchmark("colour-sums")
        assert store.scores.graders(made.run_id, benchmark.benchmark_id)[1:] == [judge]
        assert {r.format for r in store.catalog.reports(made.run_id)} == {"regrade-html", "regrade-json"}


@pytest.mark.full
def test_a_contamination_scan_runs_on_real_pods_and_a_second_one_finds_nothing_to_do(
    dags: dict[str, DAG],
    run_dag: Callable[..., DagRun],
    pod_server: PodServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every registered benchmark is held against the corpus, a pod per shard."""
    from eval_tasks.contamination.corpus import register_corpus
    from eval_tasks.settings import Settings
    from eval_tasks.store import open_store
    from tests.contamination.corpora import NOW, write_jsonl
    from tests.planned import register

    monkeypatch.setenv("CHECKPOINT_EVAL_HOME", str(tmp_path / "home"))
    connection = {"conn_type": "kubernetes", "extra": {"kube_config_path": str(pod_server.kubeconfig)}}
    monkeypatch.setenv("AIRFLOW_CONN_KUBERNETES_DEFAULT", json.dumps(connection))
    with open_store(Settings()) as store:
        register(store, tmp_path / "benchmarks")
        for n in range(2):
            write_jsonl(tmp_path / f"web/{n}.jsonl", ["some text of the web"])
        register_corpus(store, "web", str(tmp_path / "web"), now=NOW)
    (tmp_path / "home/config.yaml").write_text("contamination: {shard_bytes: 1}\n", "utf-8")
    dag = dags["contamination_scan"]
    for task in dag.tasks:
        arguments = getattr(task, "partial_kwargs", None)
        if arguments is None:
            task.retry_delay = timedelta(0)
        else:
            arguments |= {"retry_delay": timedelta(0), "poll_interval": 0.5, "logging_interval": 1}

    first = run_dag(dag)
    assert first.state == "success"
    assert _states(first) == {task_id: {"success"} for task_id in dag.task_ids}
    with open_store(Settings()) as store:
        for benchmark in store.catalog.benchmarks():
            (check,) = store.catalog.contamination(benchmark.benchmark_id)
            assert (check.corpus, check.n_documents) == ("web", 2)
    second = run_dag(dag)
    assert second.state == "success"
    assert _states(second)["scan_shard"] == {"skipped"} and _states(second)["close"] == {"success"}


def _states(run: DagRun) -> dict[str, set[str]]:
    states: dict[str, set[str]] = {}
    for instance in run.get_task_instances():
        states.setdefault(instance.task_id, set()).add(str(instance.state))
    return states
