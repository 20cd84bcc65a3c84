"""Batches of one benchmark in, their rows in item_id order out, a row group at a time.

Batches of consecutive items are merged without holding more than a row group; a plan that mixes items between batches
is sorted in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa

from eval_tasks.errors import DataError
from eval_tasks.store.parquet import ROW_GROUP_ROWS


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFile:
    """One stored batch. `item_ids` are sorted and not empty."""

    batch: int
    result_id: str
    item_ids: tuple[str, ...]


def merged(files: Sequence[BatchFile], load: Callable[[BatchFile], Any]) -> Iterator[Any]:
    """Tables of up to a row group's rows, over all files in item_id order. DataError: an item is in two files."""
    ordered = sorted(files, key=lambda file: file.item_ids[0])
    seen: set[str] = set()
    for file in ordered:
        doubled = seen.intersection(file.item_ids)
        if doubled:
            raise DataError(f"item {min(doubled)!r} is in batch {file.batch} and in another one")
        seen.update(file.item_ids)
    if all(left.item_ids[-1] < right.item_ids[0] for left, right in pairwise(ordered)):
        yield from _row_groups(load(file) for file in ordered)
    else:
        table = pa.concat_tables([load(file) for file in ordered]).sort_by("item_id")
        yield from _row_groups([table])


def _row_groups(tables: Any) -> Iterator[Any]:
    """Tables cut and joined to full row groups, the last one short."""
    waiting: list[Any] = []
    n_waiting = 0
    for table in tables:
        waiting.append(table)
        n_waiting += table.num_rows
        while n_waiting >= ROW_GROUP_ROWS:
            joined = pa.concat_tables(waiting)
            yield joined.slice(0, ROW_GROUP_ROWS)
            waiting = [joined.slice(ROW_GROUP_ROWS)]
            n_waiting -= ROW_GROUP_ROWS
    if n_waiting:
        yield pa.concat_tables(waiting)
