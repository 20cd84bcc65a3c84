"""From a DAG run of Airflow to the evaluations that it made: the tab beside its graph."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from fastapi import APIRouter
from sqlalchemy import select

from checkpoint_eval.api.access import READ
from checkpoint_eval.api.archive import Archive
from checkpoint_eval.pages.page import Page, Section, html, outward
from checkpoint_eval.pages.routes.runs import runs_table
from checkpoint_eval.pages.viewer import Visitor
from eval_tasks.errors import UserError
from eval_tasks.records import Run
from eval_tasks.store import Store

router = APIRouter(dependencies=READ)


@router.get("/of/{dag_id}/{dag_run_id:path}")
def of_dag_run(store: Archive, viewer: Visitor, dag_id: str, dag_run_id: str) -> str:
    """The runs that the task `plan` of this DAG run has planned."""
    found = [run for run_id in planned_by(dag_id, dag_run_id) for run in _known(store, run_id)]
    section = Section(
        title="",
        name="runs",
        links=(outward("In Airflow", f"/dags/{quote(dag_id)}/runs/{quote(dag_run_id, safe='')}"),),
        tables=(runs_table("runs", "Evaluations of this DAG run", found),),
        empty="Nothing is planned yet. A release waits for its approval under Required actions once it is.",
    )
    page = Page(title=f"{dag_id}", here="runs", lead=(dag_run_id,), crumbs=(("runs", "Runs"),), sections=(section,))
    return html(page, viewer)


def planned_by(dag_id: str, dag_run_id: str) -> list[str]:
    """Ids of the runs that a DAG run has planned, the candidate first; none while it has not."""
    with create_session() as session:
        value = session.scalar(
            select(XComModel.value).where(
                XComModel.dag_id == dag_id,
                XComModel.run_id == dag_run_id,
                XComModel.task_id == "plan",
                XComModel.key == "return_value",
            )
        )
    planned: Any = XComModel.deserialize_value(_Stored(value)) if value is not None else []
    return [str(each["run_id"]) for each in planned if isinstance(each, dict) and "run_id" in each]


class _Stored:
    """What `deserialize_value` reads of a row."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _known(store: Store, run_id: str) -> list[Run]:
    try:
        return [store.catalog.run(run_id)]
    except UserError:
        return []
