"""Sends alerts: from the triggerer while Airflow runs, at once where a task failed or a deadline passed.

All state is in the catalog's outbox, so that several of these at a time send nothing twice. Imports of the library are
inside the functions, since DAG files are parsed with this module loaded.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseNotifier, BaseSensorOperator
from airflow.triggers.base import BaseTrigger, StartTriggerArgs, TriggerEvent

from checkpoint_eval import metrics

if TYPE_CHECKING:
    from airflow.sdk import Context

    from eval_tasks.records import Alert

log = logging.getLogger(__name__)

# How long after a pass that failed the next one is made.
RETRY_SECONDS = 60.0


def send_due(*raised: Alert) -> tuple[int, float]:
    """Raise what was handed in and what is late, and send what is due; (how many were sent, seconds to the next pass).

    Raises EvalError when the catalog is away or the configuration is wrong; a channel that fails is no error.
    """
    from eval_tasks.alerts import channels_of, deliver, raise_late
    from eval_tasks.settings import Settings, load_config
    from eval_tasks.store import open_store

    settings = Settings()
    with open_store(settings) as store:
        for alert in raised:
            store.catalog.raise_alert(alert)
        config = load_config(settings.config)
        policy = config.alerts
        if not policy.base_url:
            policy = policy.model_copy(update={"base_url": _base_url()})
        try:
            raise_late(store, config, datetime.now(UTC))
        finally:  # what is known already is told, whatever stands in the way of finding more
            report = deliver(store, channels_of(policy), policy, owner=f"{socket.gethostname()}:{os.getpid()}")
            metrics.told_alerts(report.sent)
    return report.sent, policy.poll_seconds


def _base_url() -> str:
    """Where this Airflow's UI answers, as its own configuration says."""
    from airflow.sdk.configuration import conf

    return str(conf.get("api", "base_url", fallback="") or "")


class AlertTrigger(BaseTrigger):
    """Sends what is due, again and again; after `max_wait_seconds` one event says how many were sent."""

    def __init__(self, max_wait_seconds: float = 3600.0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.max_wait_seconds = max_wait_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The constructor's arguments."""
        return f"{type(self).__module__}.{type(self).__qualname__}", {"max_wait_seconds": self.max_wait_seconds}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Each pass is in a thread: the triggerer's loop serves other triggers, and a receiver may be slow."""
        until = time.monotonic() + self.max_wait_seconds
        n_sent = 0
        while True:
            sent, pause = await asyncio.to_thread(self._pass)
            n_sent += sent
            left = until - time.monotonic()
            if left <= 0:
                yield TriggerEvent({"sent": n_sent})  # type: ignore[no-untyped-call]
                return
            await asyncio.sleep(min(pause, left))

    def _pass(self) -> tuple[int, float]:
        from eval_tasks.errors import EvalError

        try:
            return send_due()
        except (EvalError, OSError) as error:
            # A catalog that is away, or a configuration with a mistake in it: both are mended while this waits.
            log.warning("no alerts were sent: %s", error)
            return 0, RETRY_SECONDS


class DeliverAlerts(BaseSensorOperator):
    """Sends alerts from the triggerer, so that no worker slot is used; ends after `max_wait_seconds`."""

    start_from_trigger = True

    def __init__(self, *, max_wait_seconds: float = 3600.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_wait_seconds = max_wait_seconds
        classpath, trigger_kwargs = AlertTrigger(max_wait_seconds).serialize()
        self.start_trigger_args = StartTriggerArgs(
            trigger_cls=classpath, trigger_kwargs=trigger_kwargs, next_method="execute_complete"
        )

    def execute(self, context: Context) -> None:  # noqa: ARG002
        """Defer, where a task is started in a worker all the same (`dag.test()`, a cleared task)."""
        self.defer(trigger=AlertTrigger(self.max_wait_seconds), method_name="execute_complete")

    def execute_complete(self, context: Context, event: dict[str, Any]) -> int:  # noqa: ARG002
        """How many were sent."""
        return int(event["sent"])


class AlertNotifier(BaseNotifier):
    """An event of Airflow's -> an alert, sent at once by the same outbox: a failed task, or a deadline that passed.

    As `on_failure_callback` of tasks it is called in the worker; as the callback of a DeadlineAlert in the triggerer.
    One alert for a DAG run, however many of its tasks fail. A channel that is away holds up nothing.
    """

    def notify(self, context: Context) -> None:
        """A task has failed for good."""
        send_due(*self._alerts(dict(context)))

    async def async_notify(self, context: Context) -> None:
        """A deadline has passed."""
        alerts = self._alerts(dict(context))
        await asyncio.to_thread(send_due, *alerts)

    def _alerts(self, context: dict[str, Any]) -> list[Alert]:
        run = context.get("dag_run")
        if run is None:
            return []
        named = run if isinstance(run, dict) else {key: getattr(run, key, None) for key in _OF_DAG_RUN}
        conf = named.get("conf") or {}
        if "deadline" not in context:
            return [] if _was_told(context) else [_failed(named, conf, context)]
        # The ledger knows when a landing is late, and whether a block holds it; a person's own run it does not know.
        return [] if conf.get("landing_id") else [_late(named, conf)]


_OF_DAG_RUN = ("dag_id", "run_id", "dag_run_id", "conf")


def _was_told(context: dict[str, Any]) -> bool:
    """Whether the step that failed has raised an alert of its own: one event is one message."""
    error = str(context.get("exception") or "")
    resolving = _task_id(context) == "resolve" and error.startswith("CheckpointError: ")
    return resolving or error.startswith("BudgetError: ")


def _task_id(context: dict[str, Any]) -> str:
    return getattr(context.get("ti") or context.get("task_instance"), "task_id", "a task")


def _failed(run: dict[str, Any], conf: dict[str, Any], context: dict[str, Any]) -> Alert:
    task_id = _task_id(context)
    error = str(context.get("exception") or "see its log")
    return _alert(
        "evaluation_failed",
        run,
        conf,
        title=f"failed at {task_id}",
        body=f"Task {task_id}: {error[:2000]}\nMend the cause and clear the task: what was computed is kept.",
    )


def _late(run: dict[str, Any], conf: dict[str, Any]) -> Alert:
    return _alert(
        "health_late", run, conf, title="no health verdict within its deadline", body="Its DAG run has not ended."
    )


def _alert(kind: str, run: dict[str, Any], conf: dict[str, Any], *, title: str, body: str) -> Alert:
    from eval_tasks.digests import digest_parts, short_id
    from eval_tasks.records import Alert

    run_id = str(run.get("run_id") or run.get("dag_run_id"))
    subject = f"{conf['training_run']} step {conf.get('step')}" if conf.get("training_run") else run_id
    return Alert(
        alert_id=short_id(digest_parts([kind, str(run.get("dag_id")), run_id])),
        kind=kind,
        title=f"{run.get('dag_id')} of {subject}: {title}",
        body=f"{body}\nDAG {run.get('dag_id')}, DAG run {run_id}.",
        training_run=conf.get("training_run"),
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
