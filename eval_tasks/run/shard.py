"""One shard of a plan -> response rows in the store. What a pod does.

Work is claimed batch by batch by compare-and-swap, so that two pods on one shard give one result, and a pod that died
leaves finished batches behind. The engine is loaded only when there is something left to compute.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from eval_tasks.computed_again import checked_shard, chosen
from eval_tasks.endpoint import EndpointWorker, endpoint_environment
from eval_tasks.environment import describe_environment, explain_difference, harness_version
from eval_tasks.errors import DataError, InfraError, UserError
from eval_tasks.log_lines import at
from eval_tasks.records import EndpointConfig, EngineTuning, Plan, PlannedBatch, Response
from eval_tasks.run.books import Books
from eval_tasks.run.leases import lease
from eval_tasks.run.worker import Worker
from eval_tasks.settings import Limits
from eval_tasks.store import Store

Progress = Callable[[int, int], None]

_log = logging.getLogger(__name__)


class InterruptedShardError(InfraError):
    """The pod was asked to stop: finished batches are kept, the rest is for the next try."""


class OtherEnvironmentError(InfraError):
    """This node is another environment than the one the run is pinned to: the next try goes to another node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardReport:
    """What one call of `run_shard` did: `n_computed` of `n_items` were computed here, the others by someone before.

    `tuning`: what the engine ran with, None when nothing was left to compute.
    """

    run_id: str
    shard: int
    n_items: int
    n_computed: int
    env_fingerprint: str
    seconds: float
    tuning: EngineTuning | None = None


def run_shard(
    store: Store,
    *,
    plan_uri: str,
    shard: int,
    owner: str,
    cache_dir: Path,
    limits: Limits | None = None,
    node: str = "",
    stop: threading.Event | None = None,
    progress: Progress | None = None,
) -> ShardReport:
    """Compute what is left of shard `shard` and record it as done.

    `owner` names this pod in claims. `stop`, when set, ends the work after the batch in hand with
    `InterruptedShardError`.
    `progress(items_done, items_total)` is called after each batch. Raises UserError when this is not the release that
    planned the run, OtherEnvironmentError when this environment is not the one the run is pinned to, InfraError when
    another pod holds the rest longer than its lease.
    """
    plan = store.plan(plan_uri)
    with at(run_id=plan.run_id, shard=shard, checkpoint_id=plan.request.checkpoint_id):
        return _run_planned(
            store,
            plan,
            shard,
            owner=owner,
            cache_dir=cache_dir,
            limits=limits or Limits(),
            node=node,
            stop=stop,
            progress=progress,
        )


def _run_planned(
    store: Store,
    plan: Plan,
    shard: int,
    *,
    owner: str,
    cache_dir: Path,
    limits: Limits,
    node: str,
    stop: threading.Event | None,
    progress: Progress | None,
) -> ShardReport:
    started = time.monotonic()
    batches = _batches_of(store, plan, shard)
    n_items = sum(len(batch.item_ids) for batch in batches)
    if store.responses.is_closed(plan.run_id):
        run = store.catalog.run(plan.run_id)
        return ShardReport(
            run_id=plan.run_id,
            shard=shard,
            n_items=n_items,
            n_computed=0,
            env_fingerprint=run.env_fingerprint or "",
            seconds=time.monotonic() - started,
        )
    _check_harness(plan)
    fingerprint = _pin_environment(store, plan, shard, node)
    books = Books(store, plan, shard, n_items=n_items, fingerprint=fingerprint, node=node)
    worker: Worker | EndpointWorker
    second: list[PlannedBatch] = []
    checked = checked_shard(plan, shard)
    if isinstance(plan.request.engine, EndpointConfig):
        worker = EndpointWorker(store, plan, batches, stop)
    else:
        second = _second_look(store, plan, checked)
        worker = Worker(store, plan, {shard, checked}, [*batches, *second], cache_dir)
    with books.failure_recorded():
        n_computed = _drain(
            store, plan, batches, worker, books, owner=owner, limits=limits, stop=stop, progress=progress
        )
        if second:
            _compute_again(store, plan, checked, second, worker, stop, books)
    report = ShardReport(
        run_id=plan.run_id,
        shard=shard,
        n_items=n_items,
        n_computed=n_computed,
        env_fingerprint=fingerprint,
        seconds=time.monotonic() - started,
        tuning=books.tuning,
    )
    books.record("done", seconds=report.seconds)
    return report


def _batches_of(store: Store, plan: Plan, shard: int) -> list[PlannedBatch]:
    batches = store.blobs.get_batches(plan.batches_blob, shard=shard)
    if not batches:
        raise DataError(f"plan of run {plan.run_id} has no shard {shard}; its shards are 0..{len(plan.shards) - 1}")
    return batches


def _check_harness(plan: Plan) -> None:
    """The request names the code that makes the rows: a pod of another image would file its rows under that name."""
    here, wanted = harness_version(), plan.request.harness_version
    if here != wanted:
        raise UserError(
            f"run {plan.run_id} was planned by checkpoint-eval {wanted}, and this pod runs {here}; give the pods the "
            "image of the release that plans, or plan again with this one"
        )


def _pin_environment(store: Store, plan: Plan, shard: int, node: str) -> str:
    """Record this environment; the first shard to report decides the run's, and any other fails, with what differs."""
    engine = plan.request.engine
    if isinstance(engine, EndpointConfig):
        environment = endpoint_environment(engine)
    else:
        environment = describe_environment(plan.request.engine_config)
    fingerprint = environment.env_fingerprint
    store.catalog.save_environment(environment)
    store.catalog.see_environment(plan.environment, fingerprint, datetime.now(UTC))
    try:
        run = store.catalog.pin_environment(plan.run_id, fingerprint)
    except DataError as error:
        pinned = store.catalog.environment(store.catalog.run(plan.run_id).env_fingerprint or "")
        reason = f"{error} ({'; '.join(explain_difference(pinned, environment))})"
        store.catalog.record_shard(
            plan.run_id,
            shard,
            status="failed",
            env_fingerprint=fingerprint,
            node=node,
            reason=f"OtherEnvironmentError: {reason}",
        )
        raise OtherEnvironmentError(reason) from error
    if run.status in ("planned", "incomplete", "gone"):
        store.catalog.update_run(plan.run_id, status="running", reason="")
    return fingerprint


def _drain(
    store: Store,
    plan: Plan,
    batches: Sequence[PlannedBatch],
    worker: Worker | EndpointWorker,
    books: Books,
    *,
    owner: str,
    limits: Limits,
    stop: threading.Event | None,
    progress: Progress | None,
) -> int:
    """Claim and compute batches until every one of the shard is done; the number of items computed here."""
    total = sum(len(batch.item_ids) for batch in batches)
    n_computed = 0
    patience = time.monotonic() + 2 * limits.lease_seconds
    while True:
        done = store.queue.results(plan.run_id)
        left = [batch for batch in batches if batch.batch not in done]
        books.n_done = total - sum(len(batch.item_ids) for batch in left)
        if progress:
            progress(books.n_done, total)
        if not left:
            return n_computed
        _heed(stop, books)
        # Before any claim: a pod that is stopped while it loads leaves none behind.
        books.begin(worker.load(), left)
        before = n_computed
        for batch in left:
            _heed(stop, books)
            if not store.queue.try_claim(plan.run_id, batch.batch, owner, limits.lease_seconds, datetime.now(UTC)):
                continue
            with lease(store, plan.run_id, batch.batch, owner, limits.lease_seconds):
                rows = worker.compute(batch)
                result_id = store.responses.write_batch(plan.run_id, batch.shard, batch.batch, rows)
                store.queue.try_complete(plan.run_id, batch.batch, owner, result_id)
            n_computed += len(rows)
            books.computed(batch, rows)
            if progress:
                progress(books.n_done, total)
        if n_computed > before:
            patience = time.monotonic() + 2 * limits.lease_seconds
        elif time.monotonic() > patience:
            raise InfraError(
                f"{len(left)} batches of run {plan.run_id} are claimed elsewhere and did not finish within two leases "
                f"({2 * limits.lease_seconds:.0f} s); retry once the other pod is gone"
            )
        else:
            time.sleep(min(1.0, limits.lease_seconds / 10))


def _second_look(store: Store, plan: Plan, checked: int) -> list[PlannedBatch]:
    """The items of another shard that are to be computed a second time here; none where that was done before.

    None in a judge's run either: it says nothing of a checkpoint, and nobody holds its rows against anything.
    """
    if store.catalog.run(plan.run_id).judging is not None or store.again.holds(plan.run_id, checked):
        return []
    return chosen(plan, store.blobs.get_batches(plan.batches_blob, shard=checked))


def _compute_again(
    store: Store,
    plan: Plan,
    checked: int,
    second: Sequence[PlannedBatch],
    worker: Worker | EndpointWorker,
    stop: threading.Event | None,
    books: Books,
) -> None:
    """Keep second rows of shard `checked`, to be held against its own when the run is graded."""
    rows: list[Response] = []
    for batch in second:
        _heed(stop, books)
        rows += worker.compute(batch)
    store.again.write(plan.run_id, checked, rows)
    _log.info("%d items of shard %d were computed a second time", len(rows), checked)


def _heed(stop: threading.Event | None, books: Books) -> None:
    if stop is not None and stop.is_set():
        raise InterruptedShardError(
            f"stopped with {books.n_items - books.n_done} of {books.n_items} items to go in unfinished batches; "
            "finished ones are kept"
        )
