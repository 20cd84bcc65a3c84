"""Stored rows of one benchmark of a closed run -> items with their responses, and their scores, one after the other.

The one module of this package that reads the store. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from eval_tasks.errors import DataError, UserError
from eval_tasks.records import BenchmarkVersion, Item, Plan, Response, Score
from eval_tasks.scoring.marking import score
from eval_tasks.store import Store

Answer = tuple[Item, Response]


def planned_items(store: Store, plan: Plan) -> dict[str, set[str]]:
    """The items that a plan asks for, by benchmark id."""
    planned: dict[str, set[str]] = {benchmark_id: set() for benchmark_id in plan.request.benchmark_ids}
    for batch in store.blobs.get_batches(plan.batches_blob):
        planned[batch.benchmark_id].update(batch.item_ids)
    return planned


def score_run(store: Store, run_id: str, benchmark: BenchmarkVersion, planned: Collection[str]) -> Iterator[Score]:
    """The scores of the `planned` items under the benchmark's scorer, in item_id order.

    Raises what `stored_answers` and `score` raise.
    """
    for item, response in stored_answers(store, run_id, benchmark, planned):
        yield from score(benchmark, item, response)


def stored_answers(
    store: Store, run_id: str, benchmark: BenchmarkVersion, planned: Collection[str]
) -> Iterator[Answer]:
    """Each of the `planned` items with its response, in item_id order, a few in memory; ``missing`` without a row.

    Raises DataError for a row that was not planned, or is there twice, UserError for a run whose outputs are gone.
    """
    if thinned_at := store.responses.thinned_at(run_id):
        raise UserError(f"run {run_id}: retention took its outputs out at {thinned_at}; it keeps the scores it has")
    items = store.blobs.iter_items(benchmark.items_blob, planned)
    for response in store.responses.rows(run_id, benchmark.benchmark_id):
        for item in items:
            if item.item_id == response.item_id:
                yield item, response
                break
            if item.item_id > response.item_id:
                raise _unplanned(run_id, benchmark, response)
            yield item, _missing(benchmark, item)
        else:
            raise _unplanned(run_id, benchmark, response)
    for item in items:
        yield item, _missing(benchmark, item)


def _unplanned(run_id: str, benchmark: BenchmarkVersion, response: Response) -> DataError:
    return DataError(f"run {run_id}, {benchmark.name}: row {response.item_id!r} was not planned, or is there twice")


def _missing(benchmark: BenchmarkVersion, item: Item) -> Response:
    return Response(
        benchmark_id=benchmark.benchmark_id,
        item_id=item.item_id,
        status="missing",
        prompt_digest="",
        reason="no row in a closed run",
    )
