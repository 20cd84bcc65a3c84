"""Columns in, Parquet bytes out, and back. One fixed schema per kind of row, so that an all-null column keeps its type.

Files carry page checksums: damage in a column that is read becomes a DataError that names the file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from eval_tasks.errors import DataError, InfraError, UserError, did_you_mean

ROW_GROUP_ROWS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How one kind of row is stored. `few_values` get a dictionary; `floats` are leaf paths with split byte streams."""

    schema: Any
    few_values: tuple[str, ...] = ()
    floats: tuple[str, ...] = ()

    def table(self, columns: Mapping[str, Sequence[Any]]) -> Any:
        """A table with the form's schema from one Python sequence per column; no list in a nullable column is null."""
        arrays = [pa.array(_stored_as(field, columns[field.name]), type=field.type) for field in self.schema]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def writer(self, handle: IO[bytes]) -> Any:
        """A ParquetWriter on `handle` with the form's encodings."""
        return pq.ParquetWriter(
            handle,
            self.schema,
            compression="zstd",
            compression_level=3,
            use_dictionary=list(self.few_values),
            column_encoding=dict.fromkeys(self.floats, "BYTE_STREAM_SPLIT"),
            write_page_checksum=True,
        )

    def write(self, handle: IO[bytes], table: Any) -> None:
        """`table` as one Parquet file on `handle`."""
        with self.writer(handle) as writer:
            writer.write_table(table, row_group_size=ROW_GROUP_ROWS)

    def to_bytes(self, table: Any) -> bytes:
        """`table` as the bytes of one Parquet file."""
        buffer = BytesIO()
        self.write(buffer, table)
        return buffer.getvalue()

    def read(self, file: Any, columns: Sequence[str] | None = None, groups: Sequence[int] | None = None) -> Any:
        """The rows of an open ParquetFile; a nullable column that a file of an earlier release lacks is all null.

        `groups`: only these row groups.
        """
        names = self.schema.names if columns is None else list(columns)
        known = set(file.schema_arrow.names)
        absent = [name for name in names if name not in known and self.schema.field(name).nullable]
        present = [name for name in names if name not in absent]
        table = file.read(columns=present) if groups is None else file.read_row_groups(list(groups), columns=present)
        for name in absent:
            table = table.append_column(self.schema.field(name), pa.nulls(table.num_rows, self.schema.field(name).type))
        return table.select(names)

    def check_columns(self, columns: Collection[str] | None) -> list[str] | None:
        """`columns` as a list. Raises UserError for a name that the schema does not have."""
        if columns is None:
            return None
        for name in columns:
            if name not in self.schema.names:
                raise UserError(f"no column {name!r}; {did_you_mean(name, self.schema.names)}")
        return list(columns)


def groups_with(file: Any, column: str, value: str) -> list[int]:
    """The row groups of an open ParquetFile that may hold `value` in a column, by their statistics."""
    metadata = file.metadata
    where = next(k for k in range(metadata.num_columns) if metadata.schema.column(k).path == column)
    found = []
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(where).statistics
        if statistics is None or not statistics.has_min_max or statistics.min <= value <= statistics.max:
            found.append(group)
    return found


def _stored_as(field: Any, values: Sequence[Any]) -> Sequence[Any]:
    return [value or None for value in values] if field.nullable and pa.types.is_list(field.type) else values


@contextmanager
def opened(handle: IO[bytes] | bytes, where: str) -> Iterator[Any]:
    """A ParquetFile on `handle`, which is closed after the block.

    Raises DataError naming `where` when the file, or what the block reads of it, is damaged.
    """
    source = BytesIO(handle) if isinstance(handle, bytes) else handle
    try:
        with source, pq.ParquetFile(source, page_checksum_verification=True) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # Arrow's own complaints carry no errno
            raise InfraError(f"cannot read {where}: {error}") from error
        raise DataError(f"{where} is damaged: {error}") from error


ITEMS = Form(
    schema=pa.schema(
        [
            pa.field("item_id", pa.string(), nullable=False),
            pa.field("fields", pa.string(), nullable=False),
            pa.field("target", pa.string(), nullable=False),
            pa.field("metadata", pa.string(), nullable=False),
            pa.field("stratum", pa.string()),
            pa.field("cluster", pa.string()),
        ]
    ),
    few_values=("stratum", "cluster"),
)

BATCHES = Form(
    schema=pa.schema(
        [
            pa.field("batch", pa.int32(), nullable=False),
            pa.field("shard", pa.int32(), nullable=False),
            pa.field("benchmark_id", pa.string(), nullable=False),
            pa.field("item_ids", pa.list_(pa.string()), nullable=False),
            pa.field("cost_tokens", pa.int64(), nullable=False),
        ]
    ),
    few_values=("shard", "benchmark_id"),
)

_SAMPLE = pa.struct(
    [
        pa.field("output", pa.string(), nullable=False),
        pa.field("output_ids", pa.list_(pa.int32()), nullable=False),
        pa.field("finish_reason", pa.string(), nullable=False),
        pa.field("token_logprobs", pa.list_(pa.float64()), nullable=False),
    ]
)

RESPONSES = Form(
    schema=pa.schema(
        [
            pa.field("benchmark_id", pa.string(), nullable=False),
            pa.field("item_id", pa.string(), nullable=False),
            pa.field("status", pa.string(), nullable=False),
            pa.field("reason", pa.string(), nullable=False),
            pa.field("prompt_digest", pa.string(), nullable=False),
            pa.field("output", pa.string(), nullable=False),
            pa.field("output_ids", pa.list_(pa.int32()), nullable=False),
            pa.field("finish_reason", pa.string(), nullable=False),
            pa.field("logprobs", pa.list_(pa.float64()), nullable=False),
            pa.field("token_logprobs", pa.list_(pa.list_(pa.float64())), nullable=False),
            pa.field("n_prompt_tokens", pa.int32(), nullable=False),
            pa.field("n_output_tokens", pa.int32(), nullable=False),
            pa.field("n_bytes", pa.int64(), nullable=False),
            pa.field("prompt_truncated", pa.bool_(), nullable=False),
            pa.field("output_truncated", pa.bool_(), nullable=False),
            pa.field("latency_ms", pa.float64(), nullable=False),
            pa.field("row_digest", pa.string(), nullable=False),
            pa.field("shard", pa.int32(), nullable=False),
            pa.field("batch", pa.int32(), nullable=False),
            pa.field("samples", pa.list_(_SAMPLE)),
            pa.field("greedy", pa.list_(pa.bool_())),
        ]
    ),
    few_values=("benchmark_id", "status", "reason", "finish_reason", "shard", "batch"),
    floats=(
        "latency_ms",
        "logprobs.list.element",
        "token_logprobs.list.element.list.element",
        "samples.list.element.token_logprobs.list.element",
    ),
)

SCORES = Form(
    schema=pa.schema(
        [
            pa.field("item_id", pa.string(), nullable=False),
            pa.field("metric", pa.string(), nullable=False),
            pa.field("value", pa.float64()),
            pa.field("weight", pa.float64(), nullable=False),
            pa.field("status", pa.string(), nullable=False),
            pa.field("reason", pa.string(), nullable=False),
            pa.field("extracted", pa.string()),
            pa.field("detail", pa.string(), nullable=False),
            pa.field("stratum", pa.string()),
            pa.field("cluster", pa.string()),
            pa.field("sample_values", pa.list_(pa.float64())),
        ]
    ),
    few_values=("metric", "value", "weight", "status", "reason", "extracted", "detail", "stratum", "cluster"),
)
