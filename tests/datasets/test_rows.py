from __future__ import annotations

import datetime
import gzip
import io
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eval_tasks.datasets.rows import format_of, parse_rows
from eval_tasks.errors import UserError


def _parquet(rows: list[dict[str, Any]], schema: pa.Schema | None = None) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), stream)
    return stream.getvalue()


def test_formats_give_the_same_rows() -> None:
    rows = [{"q": "é", "n": 1, "c": ["x", None], "deep": {"a": 1}}, {"q": "b\u2028c", "n": 2.5}]
    text = "\n\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode()
    parquet = _parquet(
        [{"q": "é", "n": 1.0, "c": ["x", None], "deep": {"a": 1, "b": None}}, {"q": "b\u2028c", "n": 2.5}]
    )
    assert parse_rows(text, "jsonl", "f") == rows
    assert parse_rows(gzip.compress(text), "jsonl", "f") == rows
    assert parse_rows(b"\xef\xbb\xbf" + text, "jsonl", "f") == rows
    assert parse_rows(parquet, "parquet", "f") == rows


def test_parquet_types_become_json_types() -> None:
    row = {"d": datetime.date(2024, 1, 2), "x": float("nan"), "m": Decimal("1.50")}
    assert parse_rows(_parquet([row]), "parquet", "f") == [{"d": "2024-01-02", "m": "1.50"}]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a": 1}\n{"a": ', "f, line 2: not a JSON object"),
        (b'{"a": 1}\n{"a": "\xff"}', "f, line 2: not valid UTF-8 at byte 7"),
        (b"[1]", "f, line 1: must be a JSON object, not list"),
        (b'{"a": 1, "a": 2}', "'a' stands twice"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b'{"a": 9007199254740993}', "row 1, column 'a': 9007199254740993 is too large"),
        (b'{"a": {"b": "\\ud800"}}', "row 1, column 'a': a lone surrogate"),
        (b'{"a": 1e999}', "inf is not JSON"),
        (b"", "f is empty"),
        (b"\n\n", "f is empty"),
        (gzip.compress(b'{"a": 1}\n' * 100, mtime=0)[:-20], "damaged gzip"),
    ],
)
def test_broken_jsonl_is_named(data: bytes, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_rows(data, "jsonl", "f")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"PAR1 not really", "f is not a readable Parquet file"),
        (b"", "f is not a readable Parquet file"),
        (_parquet([], pa.schema([("a", pa.string())])), "f is empty"),
        (_parquet([{"a": b"raw"}]), "row 1, column 'a': a bytes is not text"),
    ],
)
def test_broken_parquet_is_named(data: bytes, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_rows(data, "parquet", "f")


def test_format_by_name() -> None:
    assert [format_of(n) for n in ("a.jsonl", "a.JSONL.gz", "a.parquet")] == ["jsonl", "jsonl", "parquet"]
    with pytest.raises(UserError, match="set 'format"):
        format_of("a.csv")
