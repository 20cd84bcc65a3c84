"""Response <-> Arrow columns, bit for bit. A NaN is a null in the table and NaN again in the record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import nan
from typing import Any

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
    columns["row_digest"] = digests
    columns["shard"] = [shard] * len(rows)
    columns["batch"] = [batch] * len(rows)
    return RESPONSES.table(columns)


def responses_of(table: Any) -> Iterator[Response]:
    """The responses of a table or record batch that has all columns."""
    for row in table.to_pylist():
        yield Response(
            **{name: row[name] for name in _PLAIN if name != "output_ids"},
            output_ids=tuple(row["output_ids"]),
            logprobs=_with_nan(row["logprobs"]),
            token_logprobs=tuple(_with_nan(values) for values in row["token_logprobs"]),
            samples=tuple(_sample_of(sample) for sample in row.get("samples") or ()),
        )


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
