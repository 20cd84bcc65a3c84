"""The timetable of `regrade`: nothing by itself, and in a backfill one partition per stored run."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.settings import Settings
from eval_tasks.store import Store, open_store
from tests.answered import answer_by_hand, checkpoint
from tests.planned import NOW, planned, register

__all__ = ["checkpoint"]

BEGAN = datetime.fromisoformat(NOW)


@pytest.fixture
def runs(tmp_path: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of three closed runs that began in one second; a fourth has no rows."""
    from eval_tasks.grade import grade

    monkeypatch.setenv("CHECKPOINT_EVAL_HOME", str(tmp_path / "home"))
    store: Store
    with open_store(Settings()) as store:
        register(store, tmp_path / "benchmarks")
        found = []
        for repeat in range(3):
            made = planned(store, checkpoint, repeat=repeat)
            answer_by_hand(store, made)
            grade(store, run_id=made.run_id)
            found.append(made.run_id)
        planned(store, checkpoint, repeat=3)
    return found


def infos(earliest: datetime, latest: datetime) -> list[Any]:
    from checkpoint_eval.timetable import StoredRunsTimetable

    return list(StoredRunsTimetable().iter_partition_dagrun_infos(earliest=earliest, latest=latest))


def test_each_stored_run_is_a_partition_of_its_own_date(airflow_home: Path, runs: list[str]) -> None:
    found = infos(BEGAN, BEGAN)
    assert sorted(info.partition_key for info in found) == sorted(runs)
    dates = [info.partition_date for info in found]
    assert len(set(dates)) == 3 and dates == sorted(dates)
    assert {date.replace(microsecond=0) for date in dates} == {BEGAN}
    assert all(info.data_interval is None and info.run_after == info.partition_date for info in found)
    assert infos(BEGAN - timedelta(days=1), BEGAN + timedelta(days=1)) == found
    assert infos(BEGAN + timedelta(seconds=1), BEGAN + timedelta(days=1)) == []


def test_it_schedules_nothing_and_names_each_dag_run_anew(airflow_home: Path) -> None:
    import pendulum
    from airflow.timetables.base import TimeRestriction
    from airflow.utils.types import DagRunType

    from checkpoint_eval.timetable import StoredRunsTimetable

    table = StoredRunsTimetable()
    now = pendulum.instance(datetime(2026, 1, 1, tzinfo=UTC))
    restriction = TimeRestriction(earliest=now, latest=None, catchup=True)
    assert table.next_dagrun_info_v2(last_dagrun_info=None, restriction=restriction) is None
    names = {
        table.generate_run_id(
            run_type=DagRunType.BACKFILL_JOB, run_after=now, data_interval=None, partition_key="a" * 32
        )
        for _ in range(2)
    }
    assert len(names) == 2
    assert all(re.fullmatch(r"backfill__a{32}__[0-9a-f]{8}", name) for name in names)


@pytest.mark.full
def test_a_backfill_makes_a_dag_run_for_each_run_and_keeps_those_of_the_last_one(
    airflow_db: Path, runs: list[str]
) -> None:
    """Airflow's own backfill, with the DAG as it stands in the database: the plug-in's timetable is found again."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    from airflow.models.backfill import Backfill, ReprocessBehavior, _create_backfill
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from airflow.utils.state import DagRunState
    from sqlalchemy import select, update

    DagBundlesManager().sync_bundles_to_db()
    bag = DagBag(dag_folder=str(Path(__file__).parents[2] / "dags"))
    sync_bag_to_db(bag, "dags-folder", None)

    def backfill(grader: str, behavior: ReprocessBehavior) -> dict[str, Any]:
        _create_backfill(
            dag_id="regrade",
            from_date=BEGAN,
            to_date=BEGAN + timedelta(days=1),
            max_active_runs=2,
            reverse=False,
            dag_run_conf={"grader": grader},
            triggering_user_name="tester",
            reprocess_behavior=behavior,
        )
        with create_session() as session:
            # Other tests of this process may have run the DAG, without a backfill.
            of_backfills = (DagRun.dag_id == "regrade", DagRun.backfill_id.is_not(None))
            found = {run.run_id: run for run in session.scalars(select(DagRun).where(*of_backfills))}
            session.execute(update(DagRun).where(*of_backfills).values(state=DagRunState.SUCCESS))
            session.execute(update(Backfill).values(completed_at=BEGAN))
        return found

    first = backfill("own", ReprocessBehavior.COMPLETED)
    assert sorted(run.partition_key for run in first.values()) == sorted(runs)
    assert {run.conf["grader"] for run in first.values()} == {"own"}
    second = backfill("regex", ReprocessBehavior.COMPLETED)
    assert len(second) == 2 * len(runs) and {run.conf["grader"] for run in second.values()} == {"own", "regex"}
    assert set(backfill("regex", ReprocessBehavior.NONE)) == set(second)
