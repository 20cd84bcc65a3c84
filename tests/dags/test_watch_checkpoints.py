from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from eval_tasks.settings import Settings
from eval_tasks.store import open_store

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun
    from airflow.sdk import DAG

STUBS = """
from airflow.sdk import DAG, task
for tier in ("health", "selection"):
    with DAG(f"evaluate_{tier}", schedule=None) as dag:
        @task
        def note():
            pass
        note()
    globals()[f"evaluate_{tier}"] = dag
"""


@pytest.fixture(scope="module")
def watch_dag(airflow_db: Path, dags_folder: Path) -> DAG:
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(dag_folder=str(dags_folder / "watch_checkpoints.py"))
    assert bag.import_errors == {}
    return bag.dags["watch_checkpoints"]


@pytest.fixture
def landed(tmp_path: Path, airflow_db: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two complete checkpoints of one training run, its configuration, and stubs of the DAGs to be started."""
    home, root = tmp_path / "home", tmp_path / "runs" / "tiny"
    home.mkdir()
    monkeypatch.setenv("CHECKPOINT_EVAL_HOME", str(home))
    for step in (9, 10):
        folder = root / f"step-{step}"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
        (folder / "tokenizer.json").write_text("{}")
        header = json.dumps({"w": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}).encode()
        (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0")
    tiers = {"health": {"suite": "health"}, "selection": {"suite": "selection", "every": 2, "baseline": "first"}}
    run = {"name": "tiny", "uri": str(root), "quiet_seconds": 0, **tiers}
    (home / "config.yaml").write_text(yaml.safe_dump({"poll_seconds": 0.1, "training_runs": [run]}))
    (airflow_db / "dags" / "stubs.py").write_text(STUBS)
    return root


def _runs_of(dag_id: str) -> dict[str, dict]:
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        runs = session.scalars(select(DagRun).where(DagRun.dag_id == dag_id).order_by(DagRun.id)).all()
        # The database is the session's: other tests have runs of these DAGs too.
        return {run.run_id: dict(run.conf) for run in runs if "__tiny__" in run.run_id}


def _states(run: DagRun) -> dict[str, set[str]]:
    states: dict[str, set[str]] = {}
    for instance in run.get_task_instances():
        states.setdefault(instance.task_id, set()).add(str(instance.state))
    return states


def test_the_dag_waits_for_ever_and_reads_as_a_sentence(watch_dag: DAG) -> None:
    assert watch_dag.max_active_runs == 1
    assert not watch_dag.catchup
    assert type(watch_dag.timetable).__name__ == "ContinuousTimetable"
    assert watch_dag.task_ids == ["await_checkpoints", "dispatch", "record_dispatch"]
    assert watch_dag.get_task("dispatch").downstream_task_ids == {"record_dispatch"}


def test_it_has_an_owner_tags_of_the_closed_set_and_a_runbook(watch_dag: DAG) -> None:
    from checkpoint_eval.flow import OWNER, TAGS

    assert watch_dag.owner == OWNER
    assert set(watch_dag.tags) <= TAGS
    assert watch_dag.doc_md is not None
    for part in ("When it fails", "Whom it hurts"):
        assert part in watch_dag.doc_md
    for task_id in watch_dag.task_ids:
        assert f"`{task_id}`" in watch_dag.doc_md


def test_landings_are_dispatched_once_and_recorded(
    watch_dag: DAG, landed: Path, run_dag: Callable[..., DagRun]
) -> None:
    run = run_dag(watch_dag)
    assert run.state == "success"
    assert _states(run) == {task_id: {"success"} for task_id in watch_dag.task_ids}
    health, selection = _runs_of("evaluate_health"), _runs_of("evaluate_selection")
    # `dag.test()` takes mapped tasks in any order; the scheduler takes them by index, which is step order.
    assert {run_id.rsplit("__", 1)[0] for run_id in health} == {"health__tiny__9", "health__tiny__10"}
    (conf,) = selection.values()
    assert (conf["step"], conf["suite"], conf["baseline"]) == (10, "selection", "first")
    assert conf["checkpoint_uri"] == str(landed / "step-10")
    with open_store(Settings()) as store:
        rows = store.catalog.landings("tiny")
        assert [row.state for row in rows] == ["dispatched", "dispatched"]
        # As if it had been killed between firing and recording: everything is fired again, nothing is started twice.
        for row in rows:
            store.catalog.mark_landing(row.landing.landing_id, state="ready", now="2026-01-31T12:00:00+00:00")
    again = run_dag(watch_dag)
    assert again.state == "success"
    assert _states(again)["dispatch"] == {"skipped"}
    assert (_runs_of("evaluate_health"), _runs_of("evaluate_selection")) == (health, selection)
    with open_store(Settings()) as store:
        assert {row.state for row in store.catalog.landings("tiny")} == {"dispatched"}


def test_a_run_that_saw_nothing_ends_well(
    watch_dag: DAG, tmp_path: Path, run_dag: Callable[..., DagRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHECKPOINT_EVAL_HOME", str(tmp_path / "empty"))
    monkeypatch.setattr(watch_dag.get_task("await_checkpoints"), "max_wait_seconds", 0.5)
    run = run_dag(watch_dag)
    assert run.state == "success"
    assert _states(run) == {
        "await_checkpoints": {"success"},
        "dispatch": {"skipped"},
        "record_dispatch": {"success"},
    }


def test_parsing_the_file_is_light(airflow_home: Path, dags_folder: Path) -> None:
    """No heavy library, no catalog, no configuration and no storage is touched while the file is parsed."""
    program = (
        "import sys, runpy\n"
        f"sys.path[:0] = [{str(dags_folder.parent)!r}, {str(dags_folder.parent / 'plugins')!r}]\n"
        "import airflow.sdk, airflow.providers.standard.operators.trigger_dagrun\n"
        "before = set(sys.modules)\n"
        f"runpy.run_path({str(dags_folder / 'watch_checkpoints.py')!r})\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    loaded = set(done.stdout.split())
    heavy = ("torch", "transformers", "pandas", "pyarrow", "great_expectations", "numpy", "kubernetes", "fsspec")
    assert [name for name in loaded if name.split(".")[0] in heavy] == []
    assert [name for name in loaded if name.startswith(("eval_tasks.store", "eval_tasks.settings"))] == []
    assert "checkpoint_eval.sensor" in loaded
