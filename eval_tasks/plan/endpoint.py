"""A judge's questions for an endpoint -> the plan of a run: batches in one shard. Needs no tokenizer and no checkpoint.

One shard, since how many requests are in flight is bounded by the worker: a second pod would double it.
"""

from __future__ import annotations

from eval_tasks.plan.planning import known_plan, record_plan
from eval_tasks.plan.shards import Work, cut_shards
from eval_tasks.prompts import messages_of
from eval_tasks.records import BenchmarkVersion, EndpointConfig, Item, Judging, Plan, Run, RunRequest, Suite
from eval_tasks.scoring import check_scorer
from eval_tasks.settings import Limits
from eval_tasks.store import Store

_CHARACTERS_PER_TOKEN = 4


def plan_endpoint(
    store: Store, *, suite: Suite, environment: str, engine: EndpointConfig, judging: Judging, now: str
) -> Plan:
    """Plan the one benchmark of `suite`, a judge's questions. The same again is the same run, and doubles nothing."""
    from eval_tasks.environment import harness_version

    [entry] = suite.entries
    request = RunRequest(
        checkpoint_id="",
        suite=suite.name,
        suite_version=suite.version,
        suite_id=suite.suite_id,
        benchmark_ids=(entry.benchmark_id,),
        engine=engine,
        harness_version=harness_version(),
    )
    run_id = request.run_id(environment)
    made = known_plan(store, request, run_id) or _cut(store, run_id, request, engine, environment)
    run = Run(
        run_id=run_id,
        request=request,
        environment=environment,
        tier=suite.tier,
        training_run=suite.name,
        created_at=now,
        origin="endpoint",
        judging=judging,
    )
    return record_plan(store, run, made)


def about_tokens(benchmark: BenchmarkVersion, item: Item) -> int:
    """What a judge's question costs, its answer included, as a guess from the number of characters."""
    characters = sum(len(message["content"]) for message in messages_of(benchmark, item))
    return characters // _CHARACTERS_PER_TOKEN + benchmark.max_tokens


def _cut(store: Store, run_id: str, request: RunRequest, engine: EndpointConfig, environment: str) -> Plan:
    [benchmark_id] = request.benchmark_ids
    benchmark = store.catalog.benchmark_by_id(benchmark_id)
    check_scorer(benchmark)
    items = store.blobs.get_items(benchmark.items_blob)
    tokens = [about_tokens(benchmark, item) for item in items]
    work = [
        Work(
            benchmark_id=benchmark_id,
            group="generation",
            item_ids=tuple(item.item_id for item in items[start : start + engine.batch_size]),
            cost_tokens=sum(tokens[start : start + engine.batch_size]),
        )
        for start in range(0, len(items), engine.batch_size)
    ]
    batches, shards = cut_shards(work, Limits(max_shards=1))
    return Plan(
        run_id=run_id,
        request=request,
        environment=environment,
        checkpoint_uri="",
        shards=tuple(shards),
        batches_blob=store.blobs.put_batches(batches),
        n_batches=len(batches),
        n_items=len(items),
        notes=("cost in tokens is a guess from the number of characters",),
    )
