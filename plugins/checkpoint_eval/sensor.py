"""The sensor that waits for checkpoints, in the triggerer only, and says what is to be fired for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator
from airflow.triggers.base import StartTriggerArgs

from checkpoint_eval.triggers import CheckpointTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context


class CheckpointSensor(BaseSensorOperator):
    """Waits until landings are ready; gives ``trigger_dag_id``, ``trigger_run_id`` and ``conf`` of each DAG run due.

    It starts in the triggerer, so that no worker slot is used while it waits. After `max_wait_seconds` without a
    landing it ends with an empty list, so that a DAG run does not grow for ever.
    """

    start_from_trigger = True

    def __init__(self, *, max_wait_seconds: float = 3600.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_wait_seconds = max_wait_seconds
        classpath, trigger_kwargs = CheckpointTrigger(max_wait_seconds).serialize()
        self.start_trigger_args = StartTriggerArgs(
            trigger_cls=classpath, trigger_kwargs=trigger_kwargs, next_method="execute_complete"
        )

    def execute(self, context: Context) -> None:  # noqa: ARG002
        """Defer, where a task is started in a worker all the same (`dag.test()`, a cleared task)."""
        self.defer(trigger=CheckpointTrigger(self.max_wait_seconds), method_name="execute_complete")

    def execute_complete(self, context: Context, event: dict[str, Any]) -> list[dict[str, Any]]:  # noqa: ARG002
        """The DAG runs that the landings of `event` are due."""
        from checkpoint_eval.ledger import dispatches
        from eval_tasks.settings import Settings, load_config
        from eval_tasks.store import open_store

        settings = Settings()
        with open_store(settings) as store:
            due = dispatches(store, load_config(settings.config), event["landing_ids"])
        for dispatch in due:
            self.log.info("due: %s", dispatch["trigger_run_id"])
        return due
