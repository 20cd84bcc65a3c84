"""A container's log file -> the bytes that `kubectl logs` shows. Bytes all the way: torn UTF-8 passes as it is."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

FOLLOW_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """Which lines, and how. `since` is the earliest time shown."""

    timestamps: bool = False
    since: datetime | None = None
    tail_lines: int | None = None
    limit_bytes: int | None = None


def _entries(lines: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """(time, content with its line end) of each record; a part of a longer line has no line end."""
    for line in lines:
        stamp, tag, content = line.removesuffix(b"\n").split(b" ", 2)
        yield stamp, content + (b"\n" if tag == b"F" else b"")


def _rendered(entries: Iterable[tuple[bytes, bytes]], options: LogOptions) -> Iterator[bytes]:
    at_line_start = True
    for stamp, content in entries:
        if options.since is None or _moment(stamp) >= options.since:
            yield (stamp + b" " if options.timestamps and at_line_start else b"") + content
            at_line_start = content.endswith(b"\n")


def _moment(stamp: bytes) -> datetime:
    return datetime.fromisoformat(stamp.decode("ascii")[:26] + "+00:00")


def _limited(chunks: Iterable[bytes], limit_bytes: int | None) -> bytes:
    data = b"".join(chunks)
    return data if limit_bytes is None else data[:limit_bytes]


async def read_log(
    path: Path, options: LogOptions, *, follow: bool, finished: Callable[[], Awaitable[bool]]
) -> AsyncIterator[bytes]:
    """The log so far and, with `follow`, what comes until `finished` says so."""
    position, rest, first = 0, b"", True
    while True:
        over = await finished() if follow else True  # asked before reading, so that the last lines are not missed
        try:
            with path.open("rb") as file:
                file.seek(position)
                data = file.read()
        except FileNotFoundError:
            data = b""
        position += len(data)
        *lines, rest = (rest + data).split(b"\n")
        entries: Iterable[tuple[bytes, bytes]] = _entries(lines)
        if first and options.tail_lines is not None:
            entries = deque(entries, maxlen=options.tail_lines)
        chunk = _limited(_rendered(entries, options), options.limit_bytes if first else None)
        first = False
        if chunk:
            yield chunk
        if over:
            return
