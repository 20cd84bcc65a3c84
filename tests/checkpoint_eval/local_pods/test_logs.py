"""Logs: what was written comes back byte for byte, with the filters of `kubectl logs`."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from checkpoint_eval.local_pods.logs import LogOptions, read_log
from checkpoint_eval.local_pods.supervisor import LOG_LINE_BYTES, LogWriter


def shown(path: Path, **options: Any) -> bytes:
    async def over() -> bool:
        return True

    async def collect() -> bytes:
        return b"".join([chunk async for chunk in read_log(path, LogOptions(**options), follow=False, finished=over)])

    return asyncio.run(collect())


def written(path: Path, *chunks: bytes) -> Path:
    writer = LogWriter(path)
    for chunk in chunks:
        writer.write(chunk)
    writer.close()
    return path


@given(st.lists(st.binary(max_size=200), max_size=8))
def test_any_bytes_in_any_pieces_come_back(tmp_path_factory: Any, chunks: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("log") / "base.log"
    assert shown(written(path, *chunks)) == b"".join(chunks)


def test_a_long_line_is_written_in_parts_and_read_as_one(tmp_path: Path) -> None:
    line = b"x" * (3 * LOG_LINE_BYTES + 5) + b"\n"
    path = written(tmp_path / "log", line)
    assert path.read_bytes().count(b"\n") == 4
    assert shown(path) == line
    assert shown(path, timestamps=True).count(b"Z ") == 1


def test_filters(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(
        b"2026-01-01T00:00:00.000000000Z F one\n"
        b"2026-01-01T00:00:01.500000000Z F two\n"
        b"2026-01-01T00:00:02.000000000Z F three\n"
    )
    assert shown(path, tail_lines=2) == b"two\nthree\n"
    assert shown(path, since=datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)) == b"two\nthree\n"
    assert shown(path, limit_bytes=5) == b"one\nt"
    assert shown(path, timestamps=True, tail_lines=1) == b"2026-01-01T00:00:02.000000000Z three\n"


def test_a_container_without_a_log_has_an_empty_one(tmp_path: Path) -> None:
    assert shown(tmp_path / "absent") == b""
