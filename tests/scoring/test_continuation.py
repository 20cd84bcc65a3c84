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


def test_acc_is_whether_greedy_decoding_agrees(score_one: ScoreOne) -> None:
    for greedy in (True, False):
        found = score_one("continuation", target=0, logprobs=(-1.0,), token_logprobs=((-1.0,),), greedy=(greedy,))
        assert (found["acc"].value, found["acc"].status) == (float(greedy), "ok")


def test_what_was_not_recorded_is_excluded_in_its_metric_alone(score_one: ScoreOne) -> None:
    found = score_one("continuation", target=0, logprobs=(-1.0,))
    assert found["nats"].value == 1.0
    for metric in ("bits_per_token", "acc"):
        row = found[metric]
        assert (row.value, row.status) == (None, "excluded") and row.reason.endswith("not recorded")


def test_what_cannot_be_scored(score_one: ScoreOne) -> None:
    for logprob, tokens in ((-math.inf, (-math.inf,)), (0.0, ())):
        found = score_one("continuation", target=0, logprobs=(logprob,), token_logprobs=(tokens,))
        assert {row.status for row in found.values()} == {"invalid"}
        assert {name: row.value for name, row in found.items()} == {"nats": None, "bits_per_token": None, "acc": 0.0}
    with pytest.raises(DataError, match="one continuation is scored, not 2"):
        score_one("continuation", target=0, logprobs=(-1.0, -2.0), token_logprobs=((-1.0,), (-2.0,)))
