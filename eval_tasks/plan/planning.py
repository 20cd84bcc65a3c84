"""Checkpoint and suite -> the plan of a run: which items in which batches in which shards, in the store and the queue.

Needs the checkpoint's tokenizer and config, not its weights. The same request is the same run, and gets the plan that
it already has: planning twice doubles nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from eval_tasks.checkpoint import max_context, read_config
from eval_tasks.errors import UserError
from eval_tasks.plan.perturbation import batches_of
from eval_tasks.plan.selection import choose_items
from eval_tasks.plan.shards import Work, cut_shards
from eval_tasks.prompts import PromptBuilder
from eval_tasks.records import (
    BenchmarkVersion,
    Checkpoint,
    EngineConfig,
    Item,
    Judging,
    Plan,
    Request,
    Run,
    RunRequest,
    Suite,
    SuiteEntry,
    from_json,
    to_json,
)
from eval_tasks.records.engine import MOCK_MARK, MOCK_RUNS
from eval_tasks.records.plan import Group
from eval_tasks.scoring import check_scorer
from eval_tasks.settings import EnvironmentSpec, Limits
from eval_tasks.store import Store
from eval_tasks.tokenization import load_tokenizer

_ITEMS_AT_ONCE = 512


class _Size(NamedTuple):
    """What a request asks of an engine; `cost_tokens` as in Work, `n_sequences` that are read for it."""

    cost_tokens: int
    prompt_tokens: int
    output_tokens: int
    n_sequences: int


def plan(
    store: Store,
    *,
    checkpoint: Checkpoint,
    checkpoint_dir: Path,
    suite: str | Suite,
    environment: EnvironmentSpec,
    limits: Limits,
    engine: EngineConfig,
    seed: int = 0,
    repeat: int = 0,
    perturbation: str = "",
    judging: Judging | None = None,
    now: str,
) -> Plan:
    """Plan `suite` (NAME or NAME@VERSION) on a checkpoint whose verified copy lies in `checkpoint_dir`.

    `perturbation`: any text, by which a wanted repeat is batched otherwise. `judging`: whose outputs the run judges,
    where it is no evaluation.

    Raises UserError for an unknown suite, for one without items, for a benchmark that was registered with another
    scorer than this release has, and naming the items whose prompts the benchmark refuses to cut to the context.
    """
    from eval_tasks.environment import harness_version

    if perturbation and not repeat:
        raise UserError("a perturbed plan is a repeat of its request: give it a repeat number, which no run of it has")
    chosen = _suite(store, suite)
    if engine.is_mock and chosen.tier == "release":
        raise UserError(
            f"suite {chosen.name!r} is of the release tier, and environment {environment.name!r} has a mock engine: a "
            "made-up number is never released; name an environment with a real engine"
        )
    request = RunRequest(
        checkpoint_id=checkpoint.checkpoint_id,
        suite=chosen.name,
        suite_version=chosen.version,
        suite_id=chosen.suite_id,
        benchmark_ids=tuple(entry.benchmark_id for entry in chosen.entries),
        engine=engine,
        harness_version=harness_version(),
        seed=seed,
    )
    run_id = request.run_id(environment.name, repeat)
    known = known_plan(store, request, run_id)
    if known is not None and store.responses.is_closed(run_id):
        return known  # the rows are there: where the same content lies now is no part of them
    if known is not None:
        made = replace(known, checkpoint_uri=checkpoint.uri)
    else:
        made = _cut(store, run_id, request, chosen, checkpoint, checkpoint_dir, environment.name, limits, perturbation)
    run = Run(
        run_id=run_id,
        request=request,
        environment=environment.name,
        repeat=repeat,
        tier=chosen.tier,
        training_run=f"{MOCK_RUNS if engine.is_mock else ''}{checkpoint.training_run}",
        step=checkpoint.step,
        checkpoint_uri=checkpoint.uri,
        created_at=now,
        origin="mock" if engine.is_mock else "engine",
        judging=judging,
    )
    return record_plan(store, run, made)


def plan_uri(store: Store, made: Plan) -> str:
    """Where the plan lies in the store: what a pod is given."""
    return store.blobs.uri(store.blobs.put_json(to_json(made)))


def _suite(store: Store, suite: str | Suite) -> Suite:
    if isinstance(suite, Suite):
        return suite
    name, _, version = suite.partition("@")
    return store.catalog.suite(name, version or None)


def known_plan(store: Store, request: RunRequest, run_id: str) -> Plan | None:
    """The plan that the run has, None when it is new or was never wholly planned."""
    for run in store.catalog.runs(checkpoint_id=request.checkpoint_id, suite=request.suite, judging=None):
        if run.run_id == run_id and run.plan_blob is not None:
            return from_json(Plan, store.blobs.get_json(run.plan_blob))
    return None


def _cut(
    store: Store,
    run_id: str,
    request: RunRequest,
    suite: Suite,
    checkpoint: Checkpoint,
    checkpoint_dir: Path,
    environment: str,
    limits: Limits,
    perturbation: str,
) -> Plan:
    tokenizer = load_tokenizer(checkpoint_dir)
    context = max_context(read_config(checkpoint_dir))
    work: list[Work] = []
    notes: list[str] = []
    for entry in suite.entries:
        benchmark = store.catalog.benchmark_by_id(entry.benchmark_id)
        check_scorer(benchmark)
        shots = store.blobs.get_items(benchmark.few_shot_blob) if benchmark.few_shot_blob else []
        builder = PromptBuilder(benchmark, shots, tokenizer, request.engine_config, context)
        batches = batches_of(_chosen(store, benchmark, entry), request.engine_config.batch_size, perturbation)
        more, remarks = _work(benchmark, batches, builder)
        work += more
        notes += remarks
    if not work:
        raise UserError(f"suite {suite.name!r} has no items to run; add benchmarks to it")
    planned, shards = cut_shards(work, limits)
    return Plan(
        run_id=run_id,
        request=request,
        environment=environment,
        checkpoint_uri=checkpoint.uri,
        shards=tuple(shards),
        batches_blob=store.blobs.put_batches(planned),
        n_batches=len(planned),
        n_items=sum(len(batch.item_ids) for batch in planned),
        notes=(*([MOCK_MARK] if request.engine_config.is_mock else []), *notes),
    )


def _chosen(store: Store, benchmark: BenchmarkVersion, entry: SuiteEntry) -> list[Item]:
    return choose_items(store.blobs.get_items(benchmark.items_blob), entry.n_items, entry.seed)


def _work(
    benchmark: BenchmarkVersion, batches: Sequence[Sequence[Item]], builder: PromptBuilder
) -> tuple[list[Work], list[str]]:
    """The benchmark's batches, and remarks on its prompts for the plan's reader."""
    items = [item for batch in batches for item in batch]
    sizes: list[_Size] = []
    flags: Counter[str] = Counter()
    for start in range(0, len(items), _ITEMS_AT_ONCE):
        for request in builder.requests(items[start : start + _ITEMS_AT_ONCE]):
            sizes.append(_size(request))
            flags.update(_flags(request))
    group: Group = "generation" if benchmark.kind == "generation" else "logprob"
    work = []
    start = 0
    for members in batches:
        batch = sizes[start : start + len(members)]
        start += len(members)
        work.append(
            Work(
                benchmark_id=benchmark.benchmark_id,
                group=group,
                item_ids=tuple(item.item_id for item in members),
                cost_tokens=sum(size.cost_tokens for size in batch),
                longest_prompt_tokens=max(size.prompt_tokens for size in batch),
                longest_output_tokens=max(size.output_tokens for size in batch),
                n_sequences=sum(size.n_sequences for size in batch),
            )
        )
    return work, [f"{benchmark.name}: {flag} in {n} of {len(items)} items" for flag, n in sorted(flags.items())]


def _size(request: Request) -> _Size:
    n_outputs = request.sampling.samples if request.sampling else 1
    lengths = [len(ids) for ids in request.continuations]
    longer = [n for n in lengths if n > 1] if len(lengths) > 1 else []
    return _Size(
        cost_tokens=len(request.prompt_ids) + sum(lengths) + n_outputs * request.max_tokens,
        prompt_tokens=len(request.prompt_ids),
        output_tokens=max(lengths, default=request.max_tokens),
        n_sequences=1 + len(longer),
    )


def _flags(request: Request) -> Iterator[str]:
    if request.prompt_truncated:
        yield "prompt cut to the context"
    if request.boundary_merge:
        yield "token across the boundary of prompt and choice"
    if request.problem:
        yield f"not scoreable ({request.problem})"


def record_plan(store: Store, run: Run, made: Plan) -> Plan:
    """Plan blob, run, queue and shards; each step again is a no-op, so that a plan cut short is completed."""
    blob = store.blobs.put_json(to_json(made))
    stored = store.catalog.create_run(replace(run, plan_blob=blob))
    if stored.plan_blob != blob:
        store.catalog.update_run(run.run_id, plan_blob=blob, checkpoint_uri=made.checkpoint_uri)
    if not store.responses.is_closed(run.run_id):
        store.queue.enqueue(run.run_id, store.blobs.get_batches(made.batches_blob))
        store.catalog.save_shards(run.run_id, made.shards)
    return made
