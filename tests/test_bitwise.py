"""Two rows of one item: the same, or the first field that differs, with every bit of both values."""

from __future__ import annotations

import math
from typing import Any

import pytest

from eval_tasks.bitwise import first_difference
from tests.store.samples import response, sample


def test_only_latency_may_differ() -> None:
    assert first_difference("b", response("i", latency_ms=1.0), response("i", latency_ms=9.0)) is None
    nothing = response("i", logprobs=(math.nan,))
    assert first_difference("b", nothing, response("i", logprobs=(math.nan,))) is None


@pytest.mark.parametrize(
    ("changes", "field", "a", "b"),
    [
        ({"prompt_digest": "q" * 64, "logprobs": (0.0, 0.0)}, "prompt_digest", "'pppp", "'qqqq"),
        ({"logprobs": (-1.25, -0.5000000000000001)}, "logprobs[1]", "-0.5 (-0x1.0", "-0.5000000000000001 (-0x1.0"),
        ({"token_logprobs": ((-1.0, -0.25), (-0.5, 0.0))}, "token_logprobs[1] (length)", "1", "2"),
        ({"token_logprobs": ((-1.0, -0.25), (-0.0,))}, "token_logprobs[1][0]", "-0.5", "-0.0 (-0x0.0p+0)"),
        ({"status": "invalid", "reason": "x"}, "status", "'ok'", "'invalid'"),
        ({"samples": (sample(),)}, "samples (length)", "0", "1"),
        ({"n_bytes": 3}, "n_bytes", "0", "3"),
    ],
)
def test_the_first_difference_is_named_and_both_values_are_shown(
    changes: dict[str, Any], field: str, a: str, b: str
) -> None:
    found = first_difference("bench", response("i"), response("i", **changes))
    assert found is not None
    assert (found.benchmark, found.item_id, found.field) == ("bench", "i", field)
    assert found.a.startswith(a) and found.b.startswith(b)


def test_texts_are_shown_from_shortly_before_where_they_part() -> None:
    left, right = "a" * 500 + " is four", "a" * 500 + " is five"
    found = first_difference("bench", response("i", output=left), response("i", output=right))
    assert found is not None
    assert found.a.endswith("is four'") and found.b.endswith("is five'") and len(found.a) < 100


def test_minus_zero_is_not_zero() -> None:
    found = first_difference("bench", response("i", logprobs=(0.0, 1.0)), response("i", logprobs=(-0.0, 1.0)))
    assert found is not None and (found.a, found.b) == ("0.0 (0x0.0p+0)", "-0.0 (-0x0.0p+0)")
