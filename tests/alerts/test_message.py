"""What a message says, and where its link leads."""

from __future__ import annotations

import pytest

from eval_tasks.alerts.message import message
from eval_tasks.checkpoint import dag_run_id
from eval_tasks.errors import DataError
from eval_tasks.records import Alert, Landing
from eval_tasks.store import Store
from tests.store import samples

URL = "http://airflow.example:8080/"


def alert(**changes: str) -> Alert:
    fields = {
        "alert_id": "a" * 32,
        "kind": "excursion",
        "title": "t",
        "body": "five outputs\n",
        "created_at": samples.NOW,
    }
    return Alert(**{**fields, **changes})


def test_without_an_url_there_is_no_link_and_the_way_to_acknowledge_is_there(store: Store) -> None:
    title, body = message(store, alert(), "")
    assert title == "t"
    assert body.splitlines() == [
        "five outputs",
        "",
        f"raised at {samples.NOW} (UTC), kind excursion",
        f"acknowledge: python -m eval_tasks alerts acknowledge {'a' * 32} --reason ...",
    ]


def test_the_link_leads_to_the_dag_run_that_evaluates_the_checkpoint(store: Store) -> None:
    landing = Landing(training_run="tiny", step=100, uri="/runs/tiny/step-100", listing=())
    store.catalog.see_landing(landing, samples.NOW)
    started = dag_run_id("health", landing)
    store.catalog.mark_landing(
        landing.landing_id, now=samples.NOW, dag_runs=(dag_run_id("selection", landing), started)
    )
    run = store.catalog.create_run(samples.run(checkpoint_uri=landing.uri))
    assert message(store, alert(run_id=run.run_id), URL)[1].endswith(
        f"\nhttp://airflow.example:8080/dags/evaluate_health/runs/{started}"
    )
    other = store.catalog.create_run(samples.run(2, tier="release", checkpoint_uri="/elsewhere"))
    assert message(store, alert(run_id=other.run_id), URL)[1].endswith("/dags/evaluate_release/runs")


def test_an_alert_without_a_run_leads_to_the_dag_that_it_is_about(store: Store) -> None:
    assert message(store, alert(kind="checkpoint_broken"), URL)[1].endswith("/dags/watch_checkpoints/runs")
    assert message(store, alert(kind="unheard of"), URL)[1].endswith(":8080/dags")
    assert message(store, alert(run_id="never"), URL)[1].endswith(":8080/dags")


def test_a_run_that_cannot_be_read_costs_the_link_and_not_the_message(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(_run_id: str) -> None:
        raise DataError("stored Run does not fit")

    monkeypatch.setattr(store.catalog, "run", damaged)
    title, body = message(store, alert(run_id="a" * 32), URL)
    assert title == "t" and body.endswith("http://airflow.example:8080/dags")
