"""Query strings and bodies of requests -> values. Raises ApiError 400 naming the parameter and what was given."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.requests import Request

from checkpoint_eval.local_pods.errors import bad_request
from checkpoint_eval.local_pods.logs import LogOptions


def log_options(request: Request) -> LogOptions:
    """Which lines of a log are asked for."""
    since: datetime | None = None
    if text := request.query_params.get("sinceTime"):
        try:
            since = datetime.fromisoformat(text)
        except ValueError as error:
            raise bad_request(f"sinceTime must be an RFC 3339 time, not {text!r}") from error
        since = since if since.tzinfo else since.replace(tzinfo=UTC)
    elif seconds := whole_number(request, "sinceSeconds"):
        since = datetime.now(UTC) - timedelta(seconds=seconds)
    return LogOptions(
        timestamps=flag(request, "timestamps"),
        since=since,
        tail_lines=whole_number(request, "tailLines"),
        limit_bytes=whole_number(request, "limitBytes"),
    )


def flag(request: Request, name: str) -> bool:
    """Whether the parameter is set and true."""
    return request.query_params.get(name, "").lower() in ("1", "true")


def whole_number(request: Request, name: str) -> int | None:
    """The parameter's number, or None when it is absent."""
    text = request.query_params.get(name, "")
    if text and not text.isdecimal():
        raise bad_request(f"{name} must be a whole number, not {text!r}")
    return int(text) if text else None


def grace(request: Request, options: dict[str, Any]) -> int | None:
    """The grace period of a deletion, from the query or its DeleteOptions."""
    given = whole_number(request, "gracePeriodSeconds")
    if given is not None:
        return given
    value = options.get("gracePeriodSeconds")
    if value is not None and (not isinstance(value, int) or value < 0):
        raise bad_request(f"gracePeriodSeconds must be a whole number, not {value!r}")
    return value


async def body(request: Request, empty: Any = None) -> Any:
    """The JSON body, or `empty` without one."""
    data = await request.body()
    if not data:
        return empty
    try:
        return json.loads(data)
    except ValueError as error:
        raise bad_request(f"the body is not JSON: {error}") from error
