"""What a log line says of its place: the run, the shard and the checkpoint that are worked on, as JSON where asked for.

A pod's log is all that is seen of it; a collector finds the lines of a run by these fields.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Literal

LogFormat = Literal["text", "json"]
FORMATS: tuple[LogFormat, ...] = ("text", "json")
VARIABLE = "CHECKPOINT_EVAL_LOG_FORMAT"

_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_place: ContextVar[dict[str, str | int]] = ContextVar("place")


@contextmanager
def at(**place: str | int) -> Iterator[None]:
    """Say where the work is, for every line that this thread logs meanwhile."""
    token = _place.set(_place.get({}) | place)
    try:
        yield
    finally:
        _place.reset(token)


def formatter(form: LogFormat) -> logging.Formatter:
    """Of a handler: ``text`` is for people, ``json`` one object a line."""
    return _Json() if form == "json" else logging.Formatter(_TEXT)


class _Json(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, the place, and the traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_place.get({}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)
