"""A planned batch of a judge's questions -> response rows, by asking its endpoint. Loads no model.

Each reply is kept as it arrives, and a question whose reply is kept is not asked again. Rows follow the plan's order,
whatever order replies came in.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from eval_tasks.digests import digest_value
from eval_tasks.endpoint.client import ChatEndpoint, RefusedError, Reply, key_of
from eval_tasks.errors import DataError, UserError
from eval_tasks.prompts import messages_of
from eval_tasks.records import (
    BenchmarkVersion,
    EndpointConfig,
    EngineTuning,
    Environment,
    Item,
    Judge,
    Plan,
    PlannedBatch,
    Response,
)
from eval_tasks.records.item import FinishReason
from eval_tasks.store import Store

NOT_REPRODUCIBLE = "no: replies of an endpoint"


def endpoint_environment(config: EndpointConfig) -> Environment:
    """What is known of where replies come from: nothing of the machine that asks moves them."""
    return Environment(
        components={"endpoint": config.base_url, "model": config.model, "reproducible": NOT_REPRODUCIBLE}
    )


class EndpointWorker:
    """Computes batches of one plan. `stop`, when set, ends all waiting."""

    def __init__(self, store: Store, plan: Plan, batches: Sequence[PlannedBatch], stop: threading.Event | None) -> None:
        self._store = store
        self._plan = plan
        self._batches = batches
        self._stop = stop or threading.Event()
        self._access = _judge_of(store, plan).access
        self._questions: tuple[BenchmarkVersion, dict[str, Item]] | None = None

    def load(self) -> EngineTuning:
        """Read the questions. Raises UserError when the variable of the key is not set."""
        key_of(self._access)
        self._loaded()
        return EngineTuning()

    def compute(self, batch: PlannedBatch) -> list[Response]:
        """Response rows of one batch, in its item order.

        A question that the endpoint refuses is ``missing``; when it refuses all of the first batch, what it refuses is
        how it is asked, and that is a UserError.
        """
        config = self._plan.request.engine
        if not isinstance(config, EndpointConfig):
            raise DataError(f"the plan of run {self._plan.run_id} asks no endpoint")
        failed = threading.Event()
        with (
            ChatEndpoint(config, self._access, stopped=lambda: failed.is_set() or self._stop.is_set()) as endpoint,
            ThreadPoolExecutor(self._access.concurrency, thread_name_prefix="endpoint") as pool,
        ):
            asked = [pool.submit(self._answered, endpoint, item_id) for item_id in batch.item_ids]
            try:
                rows = [each.result() for each in asked]
            except BaseException:
                failed.set()
                raise
        refused = [row for row in rows if row.status == "missing"]
        if len(refused) == len(rows) and not self._store.queue.results(self._plan.run_id):
            raise UserError(f"every question so far came back, the first one so: {refused[0].reason}")
        return rows

    def _answered(self, endpoint: ChatEndpoint, item_id: str) -> Response:
        benchmark, items = self._loaded()
        messages = messages_of(benchmark, items[item_id])
        body = endpoint.body(messages, max_tokens=benchmark.max_tokens, stop=benchmark.template.stop)
        digest = digest_value(body)
        kept = self._store.replies.kept(self._plan.run_id, item_id)
        if kept is None:
            started = time.monotonic()
            try:
                reply = endpoint.ask(body)
            except RefusedError as error:
                return _refused(benchmark, item_id, digest, error)
            milliseconds = 1000 * (time.monotonic() - started)
            document = {"request": digest, "body": dict(reply.body), "milliseconds": milliseconds}
            kept = self._store.replies.keep(self._plan.run_id, item_id, document)
        return _row(benchmark, item_id, digest, kept)

    def _loaded(self) -> tuple[BenchmarkVersion, dict[str, Item]]:
        if self._questions is None:
            [benchmark_id] = self._plan.request.benchmark_ids
            benchmark = self._store.catalog.benchmark_by_id(benchmark_id)
            wanted = {item_id for batch in self._batches for item_id in batch.item_ids}
            items = self._store.blobs.get_items(benchmark.items_blob, wanted)
            self._questions = (benchmark, {item.item_id: item for item in items})
        return self._questions


def _judge_of(store: Store, plan: Plan) -> Judge:
    judging = store.catalog.run(plan.run_id).judging
    grader = store.catalog.grader_named(judging.grader) if judging else None
    if grader is None or grader.judge is None:
        raise DataError(f"run {plan.run_id} asks an endpoint, and its judge is not in the catalog")
    return grader.judge


def _refused(benchmark: BenchmarkVersion, item_id: str, digest: str, error: RefusedError) -> Response:
    return Response(
        benchmark_id=benchmark.benchmark_id,
        item_id=item_id,
        status="missing",
        prompt_digest=digest,
        reason=f"the endpoint refuses this question: {error}",
    )


def _row(benchmark: BenchmarkVersion, item_id: str, digest: str, kept: dict[str, Any]) -> Response:
    try:
        reply = Reply.of(kept["body"])
    except (KeyError, ValueError) as error:
        raise DataError(f"the reply that is kept of item {item_id!r} is none: {error}") from error
    cut = reply.finish_reason == "length"
    finish: FinishReason = "length" if cut else "stop"
    return Response(
        benchmark_id=benchmark.benchmark_id,
        item_id=item_id,
        status="ok",
        prompt_digest=digest,
        output=reply.text,
        finish_reason=finish,
        n_prompt_tokens=reply.n_prompt_tokens,
        n_output_tokens=reply.n_output_tokens,
        output_truncated=cut,
        latency_ms=float(kept.get("milliseconds", 0.0)),
    )
