"""One shard of a plan -> response rows in the store. What a pod does.

Work is claimed batch by batch by compare-and-swap, so that two pods on one shard give one result, and a pod that died
leaves finished batches behind. The engine is loaded only when there is something left to compute.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from eval_tasks.checkpoint import fetch, max_context, read_config
from eval_tasks.endpoint import EndpointWorker, endpoint_environment
from eval_tasks.environment import describe_environment, explain_difference, harness_version
from eval_tasks.errors import CheckpointGoneError, DataError, EvalError, InfraError, UserError
from eval_tasks.pace import Pace
from eval_tasks.prompts import PromptBuilder
from eval_tasks.records import EndpointConfig, EngineTuning, Item, Plan, PlannedBatch, Response
from eval_tasks.settings import Limits
from eval_tasks.store import Store
from eval_tasks.tokenization import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    from eval_tasks.engine import Engine, MockEngine, Workload
    from eval_tasks.store.catalog.shards import ShardStatus

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
    limits = limits or Limits()
    started = time.monotonic()
    plan = store.plan(plan_uri)
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
    books = _Books(store, plan, shard, n_items=n_items, fingerprint=fingerprint, node=node)
    worker: _Worker | EndpointWorker = (
        EndpointWorker(store, plan, batches, stop)
        if isinstance(plan.request.engine, EndpointConfig)
        else _Worker(store, plan, shard, batches, cache_dir)
    )
    with books.failure_recorded():
        n_computed = _drain(
            store, plan, batches, worker, books, owner=owner, limits=limits, stop=stop, progress=progress
        )
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


class _Books:
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


def _drain(
    store: Store,
    plan: Plan,
    batches: Sequence[PlannedBatch],
    worker: _Worker | EndpointWorker,
    books: _Books,
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
            with _lease(store, plan.run_id, batch.batch, owner, limits.lease_seconds):
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


def _heed(stop: threading.Event | None, books: _Books) -> None:
    if stop is not None and stop.is_set():
        raise InterruptedShardError(
            f"stopped with {books.n_items - books.n_done} of {books.n_items} items to go in unfinished batches; "
            "finished ones are kept"
        )


@contextmanager
def _lease(store: Store, run_id: str, batch: int, owner: str, lease_seconds: float) -> Iterator[None]:
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


class _Worker:
    """The model, the tokenizer, and the prompts and items of one shard's benchmarks, each loaded when first needed."""

    def __init__(self, store: Store, plan: Plan, shard: int, batches: Sequence[PlannedBatch], cache_dir: Path) -> None:
        self._store = store
        self._plan = plan
        self._shard = shard
        self._batches = batches
        self._cache_dir = cache_dir
        self._tokenizer: Tokenizer | None = None
        self._engine: Engine | MockEngine | None = None
        self._benchmarks: dict[str, tuple[PromptBuilder, dict[str, Item]]] = {}

    def compute(self, batch: PlannedBatch) -> list[Response]:
        """Response rows of one batch, in its item order."""
        engine, tokenizer, context = self._loaded()
        builder, items = self._benchmark(batch.benchmark_id, tokenizer, context)
        requests = builder.requests([items[item_id] for item_id in batch.item_ids])
        rows = engine.respond(requests)
        if [row.item_id for row in rows] != list(batch.item_ids):
            raise DataError(f"batch {batch.batch} of run {self._plan.run_id}: rows do not match the planned items")
        return [replace(row, benchmark_id=batch.benchmark_id) for row in rows]

    def load(self) -> EngineTuning:
        """Fetch the checkpoint and load the engine, once; the tuning it runs with."""
        return self._loaded()[0].tuning

    def _loaded(self) -> tuple[Engine | MockEngine, Tokenizer, int]:
        if self._engine is None or self._tokenizer is None:
            from eval_tasks.engine import MockEngine, load_engine

            checkpoint = self._store.catalog.checkpoint(self._plan.request.checkpoint_id)
            folder = fetch(replace(checkpoint, uri=self._plan.checkpoint_uri), self._cache_dir)
            engine = self._plan.request.engine_config
            limit = max_context(read_config(folder))
            self._context = min(limit, engine.max_context or limit)
            self._tokenizer = load_tokenizer(folder)
            tuning = self._store.catalog.run(self._plan.run_id).tuning
            if engine.is_mock:
                self._engine = MockEngine(
                    engine,
                    tuning,
                    self._tokenizer,
                    context=self._context,
                    seed=self._plan.request.seed,
                    target_of=self._target,
                )
            else:
                self._engine = load_engine(folder, engine, tuning, self._workload())
        return self._engine, self._tokenizer, self._context

    def _target(self, benchmark_id: str, item_id: str) -> object:
        """An item's gold answer, which the mock engine alone is told."""
        return self._benchmarks[benchmark_id][1][item_id].target

    def _workload(self) -> Workload:
        from eval_tasks.engine import Workload

        shard = next(shard for shard in self._plan.shards if shard.shard == self._shard)
        return Workload(
            prompt_tokens=shard.longest_prompt_tokens,
            output_tokens=shard.longest_output_tokens,
            n_sequences=shard.most_sequences,
            generates=shard.group == "generation",
        )

    def _benchmark(
        self, benchmark_id: str, tokenizer: Tokenizer, context: int
    ) -> tuple[PromptBuilder, dict[str, Item]]:
        """The benchmark's prompts, and its items in this shard: its table is read once, not once per batch."""
        if benchmark_id not in self._benchmarks:
            blobs, request = self._store.blobs, self._plan.request
            benchmark = self._store.catalog.benchmark_by_id(benchmark_id)
            shots = blobs.get_items(benchmark.few_shot_blob) if benchmark.few_shot_blob else []
            wanted = {i for batch in self._batches if batch.benchmark_id == benchmark_id for i in batch.item_ids}
            items = {item.item_id: item for item in blobs.get_items(benchmark.items_blob, wanted)}
            builder = PromptBuilder(benchmark, shots, tokenizer, request.engine_config, context, request.seed)
            self._benchmarks[benchmark_id] = (builder, items)
        return self._benchmarks[benchmark_id]
