"""A claim on a batch that is kept alive while the batch is computed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from eval_tasks.errors import InfraError

if TYPE_CHECKING:
    from eval_tasks.store import Store

_log = logging.getLogger(__name__)


@contextmanager
def lease(store: Store, run_id: str, batch: int, owner: str, lease_seconds: float) -> Iterator[None]:
    """Keep a claim alive while its batch is computed; give it back when the work fails.

    A catalog that cannot be reached for a while ends neither: the next beat tries again, and a claim that could not be
    given back runs out by itself.
    """
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(lease_seconds / 3):
            try:
                store.queue.renew(run_id, batch, owner, lease_seconds, datetime.now(UTC))
            except InfraError as error:
                _log.warning("the lease of batch %d of run %s was not renewed: %s", batch, run_id, error)

    heart = threading.Thread(target=beat, name=f"lease-{batch}", daemon=True)
    heart.start()
    try:
        yield
    except BaseException:
        ended.set()
        heart.join()
        try:
            store.queue.release(run_id, batch, owner)
        except InfraError as error:
            _log.warning("batch %d of run %s was not given back: %s", batch, run_id, error)
        raise
    finally:
        ended.set()
        heart.join()
