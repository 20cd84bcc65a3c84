"""Rows of items that were computed a second time, one Parquet file for each shard they are of.

They are beside a run's rows and never among them: no manifest names them, no reader of responses sees them.
"""

from __future__ import annotations

from collections.abc import Sequence

from eval_tasks.errors import DataError
from eval_tasks.records import Response
from eval_tasks.store.files import FileStore
from eval_tasks.store.identity import storable_response, stored_row_digest
from eval_tasks.store.parquet import RESPONSES, opened
from eval_tasks.store.response_rows import responses_of, table_of


class Again:
    """What was computed again, under ``again/<run_id>/``."""

    def __init__(self, files: FileStore) -> None:
        self._files = files

    def write(self, run_id: str, shard: int, rows: Sequence[Response]) -> None:
        """Keep the second rows of shard `shard`; what was there before is replaced, whole or not at all."""
        ordered = [storable_response(row) for row in sorted(rows, key=lambda row: (row.benchmark_id, row.item_id))]
        table = table_of(ordered, [stored_row_digest(row) for row in ordered], shard=shard, batch=0)
        self._files.write(_name(run_id, shard), RESPONSES.to_bytes(table))

    def holds(self, run_id: str, shard: int) -> bool:
        """Whether the second rows of a shard are there."""
        return self._files.exists(_name(run_id, shard))

    def rows(self, run_id: str, shard: int) -> list[Response]:
        """The second rows of a shard; none where nobody computed them, or the file is damaged."""
        name = _name(run_id, shard)
        try:
            with opened(self._files.read(name), self._files.uri(name)) as file:
                return list(responses_of(RESPONSES.read(file, None)))
        except (FileNotFoundError, DataError):
            return []

    def remove(self, run_id: str) -> None:
        """Remove what was compared. A no-op when repeated."""
        for name in self._files.names(f"again/{run_id}"):
            self._files.remove(name)


def _name(run_id: str, shard: int) -> str:
    return f"again/{run_id}/{shard:07d}.parquet"
