from __future__ import annotations

from pathlib import Path

import fsspec
import pytest

from eval_tasks.datasets.source import read_source
from eval_tasks.digests import digest_bytes
from eval_tasks.errors import DriftError, InfraError, UserError
from eval_tasks.registry import SourceSpec

ROWS = b'{"a": 1}\n{"a": 2}\n'


def test_a_relative_uri_is_relative_to_the_benchmark_file(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.jsonl").write_bytes(ROWS)
    table = read_source(SourceSpec(uri="data/x.jsonl", blake3=digest_bytes(ROWS)), tmp_path)
    assert table.rows == [{"a": 1}, {"a": 2}]
    assert table.blake3 == digest_bytes(ROWS)


def test_any_fsspec_uri(tmp_path: Path) -> None:
    with fsspec.open("memory://bench/x.jsonl", "wb") as stream:
        stream.write(ROWS)
    assert len(read_source(SourceSpec(uri="memory://bench/x.jsonl", blake3=digest_bytes(ROWS)), tmp_path).rows) == 2


def test_drift_names_file_digests_and_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(ROWS + b"\n")
    with pytest.raises(DriftError) as error:
        read_source(SourceSpec(uri="x.jsonl", blake3=digest_bytes(ROWS)), tmp_path)
    for part in (str(tmp_path / "x.jsonl"), digest_bytes(ROWS), digest_bytes(ROWS + b"\n"), "'version'"):
        assert part in str(error.value)


def test_absent_and_unreachable_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no file"):
        read_source(SourceSpec(uri="x.jsonl", blake3="0" * 64), tmp_path)
    with pytest.raises(UserError, match="cannot open"):
        read_source(SourceSpec(uri="nosuch://x.jsonl", blake3="0" * 64), tmp_path)
    (tmp_path / "d.jsonl").mkdir()
    with pytest.raises(InfraError, match="cannot read"):
        read_source(SourceSpec(uri="d.jsonl", blake3="0" * 64), tmp_path)


def test_where_keeps_the_rows_of_a_value(tmp_path: Path) -> None:
    data = b'{"s": "law", "n": 1}\n{"s": "art", "n": 1}\n{"n": 1}\n{"s": "law", "n": true}\n'
    (tmp_path / "x.jsonl").write_bytes(data)

    def rows(**where: str | int | bool) -> list[dict[str, object]]:
        source = SourceSpec.model_validate({"uri": "x.jsonl", "blake3": digest_bytes(data), "where": where})
        return read_source(source, tmp_path).rows

    assert rows(s="law") == [{"s": "law", "n": 1}, {"s": "law", "n": True}]
    assert rows(s="law", n=1) == [{"s": "law", "n": 1}]
    assert rows(n=True) == [{"s": "law", "n": True}]
    with pytest.raises(
        UserError, match=r"no row of .*x\.jsonl has 'lwa' in column 's' \(source\.where\); close: 'law'"
    ):
        rows(s="lwa")
    with pytest.raises(UserError, match="it has no such column"):
        rows(subject="law")
