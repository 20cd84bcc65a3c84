"""Bytes of a JSONL or Parquet file in, rows of plain JSON values out. Knows no benchmark and opens no file.

The same rows come out whatever the format: null is absence (Parquet has to fill what JSON leaves out), dates are ISO
text, a Parquet NaN is a null. What JSON cannot carry exactly is an error that names row and column.
"""

from __future__ import annotations

import datetime
import gzip
import io
import json
import math
import zlib
from decimal import Decimal
from typing import Any, Literal, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq

from eval_tasks.errors import UserError

Format = Literal["jsonl", "parquet"]
Row = dict[str, Any]

_GZIP_MAGIC = b"\x1f\x8b"
_LARGEST_EXACT_INTEGER = 2**53


def format_of(name: str) -> Format:
    """The format a file's name tells. Raises UserError for any other ending."""
    stem = name.lower().removesuffix(".gz")
    if stem.endswith((".jsonl", ".ndjson")):
        return "jsonl"
    if stem.endswith(".parquet"):
        return "parquet"
    raise UserError(f"{name}: cannot tell its format from its name; set 'format: jsonl' or 'format: parquet'")


def parse_rows(data: bytes, file_format: Format, name: str) -> list[Row]:
    """The rows of a file, in its order. `name` is for messages. Raises UserError naming line or row, and column."""
    raw = _parquet(data, name) if file_format == "parquet" else _jsonl(data, name)
    if not raw:
        raise UserError(f"{name} is empty: it has no rows")
    return [_plain_row(row, f"{name}, row {n}") for n, row in enumerate(raw, 1)]


def _jsonl(data: bytes, name: str) -> list[Row]:
    if data.startswith(_GZIP_MAGIC):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise UserError(f"{name} is a damaged gzip file: {error}") from error
    rows = []
    for n, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line.decode("utf-8"), object_pairs_hook=_unique_keys, parse_constant=_not_json)
        except UnicodeDecodeError as error:
            raise UserError(f"{name}, line {n}: not valid UTF-8 at byte {error.start}: {error.reason}") from error
        except ValueError as error:
            raise UserError(f"{name}, line {n}: not a JSON object (torn or half written?): {error}") from error
        if not isinstance(row, dict):
            raise UserError(f"{name}, line {n}: must be a JSON object, not {type(row).__name__}")
        rows.append(row)
    return rows


def _parquet(data: bytes, name: str) -> list[Row]:
    try:
        rows: list[Row] = pq.read_table(io.BytesIO(data)).to_pylist(maps_as_pydicts="strict")
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise UserError(f"{name} is not a readable Parquet file: {error}") from error
    return rows


def _unique_keys(pairs: list[tuple[str, Any]]) -> Row:
    row = dict(pairs)
    if len(row) != len(pairs):
        names = [key for key, _ in pairs]
        raise ValueError(f"key {next(k for k in names if names.count(k) > 1)!r} stands twice")
    return row


def _not_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _plain_row(row: Row, where: str) -> Row:
    plain = {key: _plain(value, f"{where}, column {key!r}") for key, value in row.items()}
    return {key: value for key, value in plain.items() if value is not None}


def _plain(value: Any, where: str) -> Any:
    """`value` as JSON carries it, nulls in objects left out. Raises UserError saying where it cannot."""
    match value:
        case None | bool():
            return value
        case str():
            if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
                raise UserError(f"{where}: a lone surrogate, which is no character; replace it with U+FFFD")
            return value
        case int():
            if abs(value) > _LARGEST_EXACT_INTEGER:
                raise UserError(f"{where}: {value} is too large for JSON to carry exactly; store it as text")
            return value
        case float():
            if math.isinf(value):
                raise UserError(f"{where}: {value} is not JSON")
            return None if math.isnan(value) else value
        case Decimal():
            return str(value)
        case datetime.date() | datetime.time():
            return value.isoformat()
        case dict():
            return {str(k): plain for k, v in value.items() if (plain := _plain(v, where)) is not None}
        case list() | tuple():
            return [_plain(v, where) for v in value]
    raise UserError(f"{where}: a {type(value).__name__} is not text, number, list or object; convert the column")
