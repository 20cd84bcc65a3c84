"""Times as callers have them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from eval_tasks.errors import UserError
from eval_tasks.store.moments import Moment, epoch_seconds, utc_text

SAME = [datetime(2026, 1, 31, 12, tzinfo=UTC), "2026-01-31T12:00:00Z", "2026-01-31T21:00:00+09:00", 1769860800.0]


@pytest.mark.parametrize("moment", SAME)
def test_one_moment_is_one_text_and_one_number(moment: Moment) -> None:
    assert utc_text(moment) == "2026-01-31T12:00:00.000000+00:00"
    assert epoch_seconds(moment) == 1769860800.0


@pytest.mark.parametrize("text", ["yesterday", "", "2026-01-31T12:00:00"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="it should read"):
        utc_text(text)
