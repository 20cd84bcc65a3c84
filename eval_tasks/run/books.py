"""What the catalog and the log are told of one shard while it is computed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from eval_tasks.errors import CheckpointGoneError, EvalError, InfraError
from eval_tasks.pace import Pace
from eval_tasks.records import EngineTuning, Plan, PlannedBatch, Response

if TYPE_CHECKING:
    from eval_tasks.store import Store
    from eval_tasks.store.catalog.shards import ShardStatus

_log = logging.getLogger(__name__)


class Books:
    """What the catalog and the log are told of one shard."""

    def __init__(self, store: Store, plan: Plan, shard: int, *, n_items: int, fingerprint: str, node: str) -> None:
        self._store = store
        self._plan = plan
        self._shard = shard
        self.n_items = n_items
        self._fingerprint = fingerprint
        self._node = node
        self._pace: Pace | None = None
        self._began = time.monotonic()
        self.n_done = 0
        self.tuning: EngineTuning | None = None

    def record(self, status: ShardStatus, *, seconds: float = 0.0, reason: str = "") -> None:
        """Say in the catalog where the shard stands."""
        self._store.catalog.record_shard(
            self._plan.run_id,
            self._shard,
            status=status,
            env_fingerprint=self._fingerprint,
            node=self._node,
            n_items=self.n_done,
            seconds=seconds,
            reason=reason,
            tuning=self.tuning,
        )

    def begin(self, tuning: EngineTuning, left: Sequence[PlannedBatch]) -> None:
        """The engine is loaded: from here on the speed is measured."""
        if self._pace is None:
            self.tuning = tuning
            cost = sum(batch.cost_tokens for batch in left)
            self._pace = Pace(n_items=self.n_items, n_done=self.n_done, cost_left=cost)
            self.record("running")

    def computed(self, batch: PlannedBatch, rows: Sequence[Response]) -> None:
        """A batch was computed here: a line in the log, and a word in the catalog, once in some seconds."""
        self.n_done = min(self.n_items, self.n_done + len(rows))
        if self._pace is None:
            return
        n_tokens = sum(row.n_prompt_tokens + row.n_output_tokens for row in rows)
        line = self._pace.add(len(rows), n_tokens, batch.cost_tokens)
        if line:
            _log.info("shard %d: %s", self._shard, line)
            self._untold(lambda: self.record("running"), "how far it is")

    @contextmanager
    def failure_recorded(self) -> Iterator[None]:
        """Say in the catalog why a shard ended, and that its run is gone when its checkpoint is."""
        try:
            self.record("running")
            yield
        except EvalError as error:
            failure = error
            self._untold(lambda: self._failed(failure), "why it failed")
            raise

    def _failed(self, error: EvalError) -> None:
        seconds = time.monotonic() - self._began
        self.record("failed", seconds=seconds, reason=f"{type(error).__name__}: {error}")
        if isinstance(error, CheckpointGoneError):
            self._store.catalog.update_run(self._plan.run_id, status="gone", reason=str(error))

    def _untold(self, record: Callable[[], None], what: str) -> None:
        """Record what the work does not wait for: a catalog out of reach for a while does not end it."""
        try:
            record()
        except InfraError as error:
            _log.warning("shard %d of run %s: %s was not recorded: %s", self._shard, self._plan.run_id, what, error)
