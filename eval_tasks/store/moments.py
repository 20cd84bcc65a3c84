"""A moment as a caller has it in; UTC as text or seconds out. Reads no clock."""

from __future__ import annotations

from datetime import UTC, datetime

from eval_tasks.errors import UserError

Moment = datetime | str | float


def utc_text(moment: Moment) -> str:
    """ISO 8601 in UTC with microseconds, so that text order is time order. Raises UserError for one without a zone."""
    return _utc(moment).isoformat(timespec="microseconds")


def epoch_seconds(moment: Moment) -> float:
    """Seconds since 1970 in UTC."""
    return float(moment) if isinstance(moment, int | float) else _utc(moment).timestamp()


def _utc(moment: Moment) -> datetime:
    if isinstance(moment, int | float):
        return datetime.fromtimestamp(moment, UTC)
    try:
        parsed = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    except ValueError as error:
        raise UserError(f"not a time: {moment!r}; it should read 2026-01-31T12:00:00+00:00") from error
    if parsed.tzinfo is None:
        raise UserError(f"a time without its zone: {moment!r}; it should read 2026-01-31T12:00:00+00:00")
    return parsed.astimezone(UTC)
