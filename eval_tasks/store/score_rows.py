"""Scores in as they come, one table sorted by metric and item_id out, with the digest of its rows.

Rows are turned into columns a chunk at a time, so that half a million of them need tens of megabytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eval_tasks.errors import DataError
from eval_tasks.records import Score
from eval_tasks.store.identity import rows_digest, storable_score, stored_score_digest
from eval_tasks.store.parquet import ROW_GROUP_ROWS, SCORES

_DIGEST_BYTES = 32


def score_table(run_id: str, benchmark_id: str, rows: Iterable[Score]) -> tuple[Any, str]:
    """A pyarrow Table of `rows` sorted by metric and item_id, and the digest of its rows in that order.

    Raises DataError for a doubled (metric, item), or for a row of another benchmark.
    """
    metrics: dict[str, _OneMetric] = {}
    for row in rows:
        if row.benchmark_id != benchmark_id:
            raise DataError(f"a score of {row.benchmark_id} for {row.item_id!r} is among those of {benchmark_id}")
        part = metrics.get(row.metric)
        if part is None:
            part = metrics[row.metric] = _OneMetric()
        part.add(row)
    tables = [SCORES.schema.empty_table()]
    digests: list[str] = []
    for metric in sorted(metrics):
        table, own = metrics.pop(metric).sorted()
        if (item_id := _doubled(table["item_id"])) is not None:
            raise DataError(f"run {run_id!r} has two scores {metric!r} for item {item_id!r}")
        tables.append(table)
        digests += own
    return pa.concat_tables(tables).combine_chunks(), rows_digest(digests)


class _OneMetric:
    """The rows of one metric: columns, and digests end to end."""

    __slots__ = ("_digests", "_in_order", "_last", "_tables", "_waiting")

    def __init__(self) -> None:
        self._waiting: list[Score] = []
        self._tables: list[Any] = []
        self._digests = bytearray()
        self._in_order = True
        self._last = ""

    def add(self, row: Score) -> None:
        """Take one more row."""
        stored = storable_score(row)
        self._digests += bytes.fromhex(stored_score_digest(stored))
        self._in_order = self._in_order and self._last <= row.item_id
        self._last = row.item_id
        self._waiting.append(stored)
        if len(self._waiting) == ROW_GROUP_ROWS:
            self._flush()

    def sorted(self) -> tuple[Any, list[str]]:
        """The table in item_id order, and its rows' digests."""
        self._flush()
        table = pa.concat_tables(self._tables)
        step = _DIGEST_BYTES
        digests = [self._digests[at : at + step].hex() for at in range(0, len(self._digests), step)]
        if self._in_order:
            return table, digests
        order = pc.sort_indices(table, sort_keys=[("item_id", "ascending")])
        return table.take(order), [digests[i] for i in order.to_pylist()]

    def _flush(self) -> None:
        if self._waiting:
            columns = {name: [getattr(row, name) for row in self._waiting] for name in SCORES.schema.names}
            self._tables.append(SCORES.table(columns))
            self._waiting.clear()


def _doubled(item_ids: Any) -> str | None:
    """The first of two equal neighbours."""
    ids = item_ids.combine_chunks()
    if len(ids) < 2:
        return None
    same = pc.index(pc.equal(ids[1:], ids[:-1]), True).as_py()
    return None if same < 0 else str(ids[same].as_py())
