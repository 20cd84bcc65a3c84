"""The store that routes read: one per server process, opened at the first request."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Annotated

from fastapi import Depends

from eval_tasks.settings import Settings
from eval_tasks.store import Store, open_store


@cache
def opened() -> Store:
    """The store of this process's settings."""
    return open_store(Settings())


Archive = Annotated[Store, Depends(opened)]


def now() -> str:
    """The present in UTC, ISO 8601, as the catalog keeps times."""
    return datetime.now(UTC).isoformat(timespec="seconds")
