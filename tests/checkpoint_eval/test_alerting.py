"""Alerts through Airflow: the trigger that sends them, the notifier on failed tasks and passed deadlines."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from eval_tasks.errors import DataError
from eval_tasks.records import Alert, Landing
from eval_tasks.settings import Settings
from eval_tasks.store import Store, open_store
from tests.alerts.receivers import Webhook

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun

pytestmark = pytest.mark.usefixtures("airflow_home")

CONF = {"training_run": "tiny", "step": 7}


@pytest.fixture
def webhook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Webhook]:
    with Webhook() as server:
        yield server


@pytest.fixture
def opened(tmp_path: Path, webhook: Webhook, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The store that Airflow's processes open, and a configuration with the webhook."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("CHECKPOINT_EVAL_HOME", str(home))
    run = {"name": "tiny", "uri": str(tmp_path), "health": {"suite": "h"}}
    alerts = {"channels": [{"name": "on-call", "url": webhook.url}], "poll_seconds": 0.05}
    (home / "config.yaml").write_text(yaml.safe_dump({"training_runs": [run], "alerts": alerts}))
    with open_store(Settings()) as store:
        yield store


def raised(store: Store, name: str) -> None:
    store.catalog.raise_alert(Alert(alert_id=name, kind="k", title=name, body="b", created_at="2026-01-01T00:00:00Z"))


def test_what_is_known_is_sent_although_what_is_late_cannot_be_found(
    opened: Store, webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    from checkpoint_eval.alerting import send_due

    def away(*_: object) -> None:
        raise DataError("stored Landing does not fit")

    monkeypatch.setattr("eval_tasks.alerts.raise_late", away)
    raised(opened, "quarantined")
    with pytest.raises(DataError, match="stored Landing"):
        send_due()
    assert webhook.titles == ["quarantined"]


def _event(max_wait_seconds: float) -> Any:
    from checkpoint_eval.alerting import AlertTrigger

    async def first() -> Any:
        async for event in AlertTrigger(max_wait_seconds).run():
            return event.payload
        return None

    return asyncio.run(first())


def test_the_trigger_sends_until_its_time_is_over(opened: Store, webhook: Webhook) -> None:
    raised(opened, "first")
    assert _event(0.0) == {"sent": 1}
    raised(opened, "second")
    assert _event(0.3) == {"sent": 1}
    assert webhook.titles == ["first", "second"]


def test_the_trigger_outlives_a_mistake_in_the_configuration(
    opened: Store, webhook: Webhook, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "home" / "config.yaml").write_text("alerts: {chanels: []}")
    raised(opened, "first")
    with caplog.at_level(logging.WARNING):
        assert _event(0.0) == {"sent": 0}
    assert "close: 'channels'" in caplog.text


def test_the_sensor_starts_in_the_triggerer_and_names_what_it_serializes(airflow_home: Path) -> None:
    from checkpoint_eval.alerting import AlertTrigger, DeliverAlerts

    sensor = DeliverAlerts(task_id="deliver", max_wait_seconds=5)
    assert sensor.start_from_trigger
    classpath, arguments = AlertTrigger(5).serialize()
    assert sensor.start_trigger_args is not None
    assert (sensor.start_trigger_args.trigger_cls, sensor.start_trigger_args.trigger_kwargs) == (classpath, arguments)
    assert sensor.execute_complete({}, {"sent": 3}) == 3  # type: ignore[typeddict-item]


def test_a_dag_run_that_fails_is_one_message_whatever_fails_in_it(
    opened: Store, webhook: Webhook, run_dag: Callable[..., DagRun]
) -> None:
    from airflow.sdk import DAG, task

    from checkpoint_eval.alerting import AlertNotifier

    with DAG(
        dag_id="evaluate_test", schedule=None, default_args={"on_failure_callback": AlertNotifier(), "retries": 0}
    ) as dag:

        @task
        def resolve() -> None:
            raise RuntimeError("no such checkpoint")

        @task
        def other() -> None:
            raise RuntimeError("nor this")

        resolve()
        other()
    assert run_dag(dag, run_conf=CONF).state == "failed"
    (title,) = webhook.titles
    assert title.startswith("evaluate_test of tiny step 7: failed at ")
    (alert,) = opened.catalog.alerts()
    assert (alert.kind, alert.training_run) == ("evaluation_failed", "tiny")
    assert "RuntimeError" in alert.body or "no such checkpoint" in alert.body or "nor this" in alert.body


def _deadline(conf: dict[str, Any]) -> None:
    """As a DeadlineAlert's callback is called in the triggerer: with the DAG run as the API shows it."""
    from checkpoint_eval.alerting import AlertNotifier

    context = {
        "dag_run": {"dag_id": "evaluate_health", "dag_run_id": "manual__1", "conf": conf},
        "deadline": {"id": "d", "deadline_time": "2026-01-01T00:10:00Z"},
    }

    async def call() -> None:
        await AlertNotifier(context=context)  # type: ignore[arg-type]

    asyncio.run(call())


def test_a_passed_deadline_of_a_persons_own_run_is_one_message(opened: Store, webhook: Webhook) -> None:
    _deadline(CONF)
    _deadline(CONF)
    assert webhook.titles == ["evaluate_health of tiny step 7: no health verdict within its deadline"]


def test_of_a_landing_the_ledger_knows_whether_it_is_late(opened: Store, webhook: Webhook) -> None:
    landing = Landing(training_run="tiny", step=7, uri="/runs/tiny/step-7", listing=())
    opened.catalog.see_landing(landing, datetime.now(UTC) - timedelta(minutes=11))
    opened.catalog.mark_landing(
        landing.landing_id, now=datetime.now(UTC), state="dispatched", dag_runs=(f"health__{landing.landing_id}",)
    )
    _deadline({**CONF, "landing_id": landing.landing_id})
    _deadline({**CONF, "landing_id": landing.landing_id})
    assert webhook.titles == ["tiny step 7: no health verdict 10 minutes after it landed"]
    opened.catalog.finish_landing(landing.landing_id, f"health__{landing.landing_id}")
    _deadline({**CONF, "landing_id": landing.landing_id})
    assert len(webhook.titles) == 1


def test_the_health_tier_has_a_deadline_of_ten_minutes_and_no_other_has(airflow_home: Path) -> None:
    from checkpoint_eval.flow import evaluation_dag

    dag = evaluation_dag("health", doc_md=None)
    (deadline,) = dag.deadline  # type: ignore[misc]
    assert deadline.interval == timedelta(minutes=10)
    assert deadline.callback.path == "checkpoint_eval.alerting.AlertNotifier"
    assert not evaluation_dag("selection", doc_md=None).deadline
