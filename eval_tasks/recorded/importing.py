"""Files of recorded responses -> a run that is graded, aggregated, guarded and compared like any other.

It claims no engine, no environment and no checkpoint: its request names the files' digests in place of a configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from eval_tasks.digests import digest_bytes, digest_value, short_id
from eval_tasks.errors import UserError
from eval_tasks.recorded import inspect_log, jsonl, lm_eval_log
from eval_tasks.recorded.joining import join
from eval_tasks.recorded.rows import RecordedRow
from eval_tasks.records import (
    BenchmarkVersion,
    ImportedRows,
    Item,
    Plan,
    PlannedBatch,
    Response,
    Run,
    RunRequest,
    to_json,
)
from eval_tasks.registry.templates import Rendering, render_choices
from eval_tasks.scoring import check_scorer
from eval_tasks.store import Store

_FORMATS: Mapping[str, Callable[[Path], Iterator[RecordedRow]]] = {
    "jsonl": jsonl.rows_of,
    "lm-eval": lm_eval_log.rows_of,
    "inspect": inspect_log.rows_of,
}
FORMATS = tuple(_FORMATS)
_NOWHERE = "imported"
_OWNER = "import"
_LEASE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What was imported: `n_rows` answers to `n_items` items; `n_empty` rows in the files had no answer."""

    run_id: str
    n_items: int
    n_rows: int
    n_empty: int


def import_run(store: Store, *, benchmark: str, source: ImportedRows, files: Sequence[Path], now: str) -> ImportReport:
    """Record the responses in `files` as a run of `benchmark` (NAME or NAME@VERSION), ready to be graded.

    `source.files` is filled in here. The same files under the same name are the same run. Items without an answer are
    ``missing``. Raises UserError, naming file and line, for what cannot be read or joined, before anything is stored.
    """
    from eval_tasks.environment import harness_version

    version = _benchmark(store, benchmark)
    items = {item.item_id: item for item in store.blobs.get_items(version.items_blob)}
    rows = [row for path in files for row in _FORMATS[source.format](path)]
    if not rows:
        raise UserError(f"{', '.join(map(str, files))}: no rows to import")
    joined = join(rows, items, version.name)
    responses = [_response(version, items[item_id], row) for item_id, row in sorted(joined.items()) if _is_answer(row)]
    if not responses:
        raise UserError(f"{', '.join(map(str, files))}: {len(rows)} rows and no answer in any")
    named = _with_digests(source, files)
    request = RunRequest(
        checkpoint_id="",
        suite=_NOWHERE,
        suite_version="1",
        suite_id=short_id(digest_value([_NOWHERE, version.benchmark_id])),
        benchmark_ids=(version.benchmark_id,),
        engine=named,
        harness_version=harness_version(),
    )
    batch = PlannedBatch(
        batch=0, shard=0, benchmark_id=version.benchmark_id, item_ids=tuple(sorted(items)), cost_tokens=0
    )
    run_id = _record(store, request, named, batch, now)
    _store_rows(store, run_id, batch, responses)
    return ImportReport(
        run_id=run_id, n_items=len(items), n_rows=len(responses), n_empty=sum(not _is_answer(row) for row in rows)
    )


def _benchmark(store: Store, name: str) -> BenchmarkVersion:
    base, _, number = name.partition("@")
    version = store.catalog.benchmark(base, number or None)
    check_scorer(version)
    if version.kind == "loss":
        raise UserError(f"benchmark {base!r} is of kind loss: recorded outputs do not hold the logprobs of given texts")
    if version.sampling is not None:
        raise UserError(
            f"benchmark {base!r} samples each item {version.sampling.samples} times: no format here has that"
        )
    return version


def _with_digests(source: ImportedRows, files: Sequence[Path]) -> ImportedRows:
    return replace(source, files=tuple(sorted(digest_bytes(path.read_bytes()) for path in files)))


def _is_answer(row: RecordedRow) -> bool:
    return row.output is not None or row.choice_logprobs is not None


def _response(version: BenchmarkVersion, item: Item, row: RecordedRow) -> Response:
    """The row as a response of which only the answer is known. Raises UserError when it is of another kind."""
    if version.kind == "generation":
        if row.output is None:
            raise UserError(f"{row.where}: logprobs of choices, and benchmark {version.name!r} asks for text")
        return Response(
            benchmark_id=version.benchmark_id, item_id=item.item_id, status="ok", prompt_digest="", output=row.output
        )
    if row.choice_logprobs is None:
        raise UserError(f"{row.where}: a text, and benchmark {version.name!r} is scored by the logprobs of its choices")
    rendering = Rendering(benchmark=version.name, item_id=item.item_id, fields=item.fields)
    n_choices = len(render_choices(version.template.choices, rendering))
    if len(row.choice_logprobs) != n_choices:
        raise UserError(
            f"{row.where}: {len(row.choice_logprobs)} logprobs, and item {item.item_id!r} has {n_choices} choices"
        )
    return Response(
        benchmark_id=version.benchmark_id,
        item_id=item.item_id,
        status="ok",
        prompt_digest="",
        logprobs=row.choice_logprobs,
        greedy=row.greedy,
    )


def _record(store: Store, request: RunRequest, source: ImportedRows, batch: PlannedBatch, now: str) -> str:
    """The run, with a plan that asks for every item and names no shard: no pod can be given any."""
    run_id = request.run_id(_NOWHERE)
    made = Plan(
        run_id=run_id,
        request=request,
        environment=_NOWHERE,
        checkpoint_uri="",
        shards=(),
        batches_blob=store.blobs.put_batches([batch]),
        n_batches=1,
        n_items=len(batch.item_ids),
    )
    store.catalog.create_run(
        Run(
            run_id=run_id,
            request=request,
            environment=_NOWHERE,
            tier="selection",
            training_run=source.training_run,
            step=source.step,
            created_at=now,
            plan_blob=store.blobs.put_json(to_json(made)),
            origin="imported",
        )
    )
    return run_id


def _store_rows(store: Store, run_id: str, batch: PlannedBatch, responses: Sequence[Response]) -> None:
    """The rows as the result of the one batch; a run that has them is left as it is."""
    if store.responses.is_closed(run_id):
        return
    store.queue.enqueue(run_id, [batch])
    result_id = store.responses.write_batch(run_id, batch.shard, batch.batch, responses)
    # An import that died in between holds the claim under the same name: it is completed here all the same.
    store.queue.try_claim(run_id, batch.batch, _OWNER, _LEASE_SECONDS, datetime.now(UTC))
    store.queue.try_complete(run_id, batch.batch, _OWNER, result_id)
