"""One continuation's nats and bits per token."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from eval_tasks.errors import DataError
from eval_tasks.records import Score

ScoreOne = Callable[..., dict[str, Score]]


def test_nats_and_bits_per_token(score_one: ScoreOne) -> None:
    nats = 3 * math.log(2)
    found = score_one("continuation", target=0, logprobs=(-nats,), token_logprobs=((-nats / 2, -nats / 2),))
    assert (found["nats"].value, found["nats"].weight) == (nats, 1.0)
    assert (found["bits_per_token"].value, found["bits_per_token"].weight) == (pytest.approx(1.5), 2.0)


def test_what_cannot_be_scored(score_one: ScoreOne) -> None:
    for logprob, tokens in ((-math.inf, (-math.inf,)), (0.0, ())):
        found = score_one("continuation", target=0, logprobs=(logprob,), token_logprobs=(tokens,))
        assert {(row.value, row.status) for row in found.values()} == {(None, "invalid")}
    with pytest.raises(DataError, match="one continuation is scored, not 2"):
        score_one("continuation", target=0, logprobs=(-1.0, -2.0), token_logprobs=((-1.0,), (-2.0,)))
