"""Planned batches -> response rows, by the engine of a plan's request. Knows no claims and no catalog of shards."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from eval_tasks.checkpoint import fetch, max_context, read_config
from eval_tasks.errors import DataError
from eval_tasks.prompts import PromptBuilder
from eval_tasks.records import EngineTuning, Item, Plan, PlannedBatch, Response
from eval_tasks.store import Store
from eval_tasks.tokenization import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    from eval_tasks.engine import Engine, MockEngine, Workload


class Worker:
    """The model, the tokenizer, and the prompts and items of its batches' benchmarks, each loaded when first needed.

    `shards`: those that the batches are of, from which its memory is reckoned.
    """

    def __init__(
        self, store: Store, plan: Plan, shards: Collection[int], batches: Sequence[PlannedBatch], cache_dir: Path
    ) -> None:
        self._store = store
        self._plan = plan
        self._shards = frozenset(shards)
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

        shards = [shard for shard in self._plan.shards if shard.shard in self._shards]
        return Workload(
            prompt_tokens=max(shard.longest_prompt_tokens for shard in shards),
            output_tokens=max(shard.longest_output_tokens for shard in shards),
            n_sequences=max(shard.most_sequences for shard in shards),
            generates=any(shard.group == "generation" for shard in shards),
        )

    def _benchmark(
        self, benchmark_id: str, tokenizer: Tokenizer, context: int
    ) -> tuple[PromptBuilder, dict[str, Item]]:
        """The benchmark's prompts, and its items in these batches: its table is read once, not once per batch."""
        if benchmark_id not in self._benchmarks:
            blobs, request = self._store.blobs, self._plan.request
            benchmark = self._store.catalog.benchmark_by_id(benchmark_id)
            shots = blobs.get_items(benchmark.few_shot_blob) if benchmark.few_shot_blob else []
            wanted = {i for batch in self._batches if batch.benchmark_id == benchmark_id for i in batch.item_ids}
            items = {item.item_id: item for item in blobs.get_items(benchmark.items_blob, wanted)}
            builder = PromptBuilder(benchmark, shots, tokenizer, request.engine_config, context, request.seed)
            self._benchmarks[benchmark_id] = (builder, items)
        return self._benchmarks[benchmark_id]
