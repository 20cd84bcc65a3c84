"""The timetable of `regrade`: nothing is ever scheduled, and a backfill has one DAG run per stored run of its window.

A partition is a stored run: its key is the run id, its date the second in which the run began. Airflow tells partitions
apart by their date, so that the microseconds are made of the run id: they are the same whatever else is stored.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pendulum
from airflow.timetables.base import DagRunInfo, DataInterval, Timetable

if TYPE_CHECKING:
    from airflow.timetables.base import TimeRestriction
    from airflow.utils.types import DagRunType


class StoredRunsTimetable(Timetable):
    """One partition per closed evaluation in the catalog, oldest first. Opens the catalog when a backfill is made."""

    description = "Backfills only: one DAG run for each stored run of the window"
    periodic = True
    can_be_scheduled = True
    partitioned = True

    @property
    def summary(self) -> str:
        """What the UI shows as the schedule."""
        return "stored runs (backfill)"

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """Nothing is due by itself."""

    def infer_manual_data_interval(self, *, run_after: pendulum.DateTime) -> DataInterval:
        """A run that a person starts has no interval of its own."""
        return DataInterval.exact(run_after)

    def iter_partition_dagrun_infos(self, *, earliest: datetime, latest: datetime) -> Iterable[DagRunInfo]:
        """The stored runs that began from `earliest` to `latest`, both inclusive."""
        for run_id, began in stored_runs(earliest, latest):
            date = pendulum.instance(began)
            yield DagRunInfo(run_after=date, data_interval=None, partition_date=date, partition_key=run_id)

    def generate_run_id(
        self,
        *,
        run_type: DagRunType,
        run_after: pendulum.DateTime,
        data_interval: DataInterval | None,  # noqa: ARG002
        **extra: Any,
    ) -> str:
        """A name of its own each time: a run that is regraded again keeps the DAG run of the last time."""
        suffix = extra.get("partition_key") or run_after.isoformat()
        return run_type.generate_run_id(suffix=f"{suffix}__{uuid.uuid4().hex[:8]}")


def stored_runs(earliest: datetime, latest: datetime) -> list[tuple[str, datetime]]:
    """Ids of the closed evaluations that began from `earliest` to `latest`, each with a moment that no other has."""
    from eval_tasks.graders import Window, runs_in
    from eval_tasks.settings import Settings
    from eval_tasks.store import open_store

    with open_store(Settings()) as store:
        runs = runs_in(store, Window(since=earliest, until=latest + timedelta(microseconds=1)))
    found: dict[datetime, str] = {}
    for run in runs:
        began = datetime.fromisoformat(run.created_at)
        moment = began.replace(microsecond=int(run.run_id[:8], 16) % 1_000_000)
        while moment in found:
            moment += timedelta(microseconds=1)
        found[moment] = run.run_id
    return [(run_id, moment) for moment, run_id in sorted(found.items())]
