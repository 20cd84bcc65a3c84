"""What the triggerer runs: one look at checkpoint storage after another, until some landings are to be fired.

All its state is in the ledger, so that it may be killed, moved or run twice at any time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from checkpoint_eval import metrics
from checkpoint_eval.metrics import Standing

if TYPE_CHECKING:
    from checkpoint_eval.ledger import Watch

log = logging.getLogger(__name__)

# How long after a look that failed the next one is made; doubled after each further failure, up to the limit.
RETRY_SECONDS = 15.0
RETRY_LIMIT_SECONDS = 300.0


class CheckpointTrigger(BaseTrigger):
    """Yields one event: ``{"landing_ids": [...]}`` once any are to be fired, an empty list after `max_wait_seconds`.

    The configuration is read anew at every look: training runs may come and go while this waits.
    """

    def __init__(self, max_wait_seconds: float = 3600.0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.max_wait_seconds = max_wait_seconds
        self._watch: Watch | None = None
        self._standing = Standing()

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The constructor's arguments."""
        return f"{type(self).__module__}.{type(self).__qualname__}", {"max_wait_seconds": self.max_wait_seconds}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look, sleep, look again. Each look is in a thread: the triggerer's loop serves other triggers meanwhile."""
        until = time.monotonic() + self.max_wait_seconds
        n_failures = 0
        while True:
            landing_ids, poll_seconds = await asyncio.to_thread(self._look)
            if landing_ids:
                yield _event(landing_ids)
                return
            pause = poll_seconds
            if pause is None:
                pause = min(RETRY_SECONDS * 2 ** min(n_failures, 10), RETRY_LIMIT_SECONDS)
            n_failures = n_failures + 1 if poll_seconds is None else 0
            left = until - time.monotonic()
            if left <= 0:
                yield _event([])
                return
            await asyncio.sleep(min(pause, left))

    def _look(self) -> tuple[list[str], float | None]:
        """(landings to be fired, seconds to the next look: None when this one failed)."""
        from checkpoint_eval.ledger import Watch
        from eval_tasks.errors import EvalError
        from eval_tasks.settings import Settings, load_config
        from eval_tasks.store import open_store

        try:
            settings = Settings()
            config = load_config(settings.config)
            if self._watch is None:
                metrics.begin()
                self._watch = Watch(open_store(settings))
            fired = self._watch.poll(config, datetime.now(UTC))
            self._standing.tell(self._watch.store, config)
            return fired, config.poll_seconds
        except (EvalError, OSError) as error:
            # A catalog that is away, or a configuration with a mistake in it: both are mended while this waits.
            log.warning("no look at checkpoints: %s", error)
            self._close()
            return [], None

    def _close(self) -> None:
        if self._watch is not None:
            self._watch.store.close()
            self._watch = None

    async def cleanup(self) -> None:
        """Close the catalog's connections."""
        await asyncio.to_thread(self._close)


def _event(landing_ids: list[str]) -> TriggerEvent:
    return TriggerEvent({"landing_ids": landing_ids})  # type: ignore[no-untyped-call]
