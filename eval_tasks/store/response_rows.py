"""Response <-> Arrow columns, bit for bit. A NaN is a null in the table and NaN again in the record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import nan
from typing import Any

import pyarrow as pa

from eval_tasks.records import Response, Sample
from eval_tasks.store.parquet import RESPONSES

_PLAIN = (
    "benchmark_id",
    "item_id",
    "status",
    "prompt_digest",
    "reason",
    "output",
    "output_ids",
    "finish_reason",
    "n_prompt_tokens",
    "n_output_tokens",
    "n_bytes",
    "prompt_truncated",
    "output_truncated",
    "latency_ms",
)


def table_of(rows: Sequence[Response], digests: Sequence[str], *, shard: int, batch: int) -> Any:
    """Storable responses of one batch as a table; `digests` are theirs."""
    columns: dict[str, Sequence[Any]] = {name: [getattr(row, name) for row in rows] for name in _PLAIN}
    columns["logprobs"] = [_without_nan(row.logprobs) for row in rows]
    columns["token_logprobs"] = [[_without_nan(values) for values in row.token_logprobs] for row in rows]
    columns["samples"] = [[_sample_row(sample) for sample in row.samples] for row in rows]
    columns["greedy"] = [row.greedy for row in rows]
    columns["row_digest"] = digests
    columns["shard"] = [shard] * len(rows)
    columns["batch"] = [batch] * len(rows)
    return RESPONSES.table(columns)


def responses_of(table: Any) -> Iterator[Response]:
    """The responses of a table or record batch that has all columns."""
    plain = [table.column(name).to_pylist() for name in _PLAIN if name != "output_ids"]
    names = [name for name in _PLAIN if name != "output_ids"]
    output_ids, logprobs = _lists(table.column("output_ids")), _lists(table.column("logprobs"))
    token_logprobs = _lists(table.column("token_logprobs"))
    samples, greedy = _optional(table, "samples"), _optional(table, "greedy")
    for n, values in enumerate(zip(*plain, strict=True)):
        yield Response(
            **dict(zip(names, values, strict=True)),
            output_ids=output_ids[n],
            logprobs=logprobs[n],
            token_logprobs=token_logprobs[n],
            samples=tuple(_sample_of(sample) for sample in samples[n] or ()),
            greedy=tuple(greedy[n] or ()),
        )


def _optional(table: Any, name: str) -> Sequence[Any]:
    """A column that files of earlier releases do not have; None where there is nothing."""
    if name not in table.schema.names or table.column(name).null_count == table.num_rows:
        return [None] * table.num_rows
    values: list[Any] = table.column(name).to_pylist()
    return values


def _lists(column: Any) -> list[tuple[Any, ...]]:
    """A tuple per row of a column of lists, of lists of lists too; a null number is NaN. No row is null."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array.values, pa.ListArray):
        values: list[Any] = _lists(array.values)
    else:
        values = array.values.to_numpy(zero_copy_only=False).tolist()
    return [tuple(values[start:end]) for start, end in pairwise(array.offsets.to_pylist())]


def _sample_row(sample: Sample) -> dict[str, Any]:
    return {
        "output": sample.output,
        "output_ids": sample.output_ids,
        "finish_reason": sample.finish_reason,
        "token_logprobs": _without_nan(sample.token_logprobs),
    }


def _sample_of(row: dict[str, Any]) -> Sample:
    return Sample(
        output=row["output"],
        output_ids=tuple(row["output_ids"]),
        finish_reason=row["finish_reason"],
        token_logprobs=_with_nan(row["token_logprobs"]),
    )


def _without_nan(values: Sequence[float]) -> list[float | None]:
    return [value if value == value else None for value in values]


def _with_nan(values: Sequence[float | None]) -> tuple[float, ...]:
    return tuple(nan if value is None else value for value in values)


def without_outputs(table: Any) -> Any:
    """A table of responses with what a model wrote, and every value per token, taken out."""
    for name in ("output", "output_ids", "token_logprobs", "samples"):
        field = table.schema.field(name)
        if field.nullable:
            empty = pa.nulls(table.num_rows, field.type)
        else:
            empty = pa.repeat(pa.scalar("" if pa.types.is_string(field.type) else [], field.type), table.num_rows)
        table = table.set_column(table.schema.get_field_index(name), field, empty)
    return table
