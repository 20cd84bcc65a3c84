"""Bits per byte and per token."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from eval_tasks.errors import DataError
from eval_tasks.records import Score

ScoreOne = Callable[..., dict[str, Score]]
TEXT = {"item": "{{ text }}"}


def test_bits_per_byte_and_per_token(score_one: ScoreOne) -> None:
    nats = -18 * math.log(2)
    scores = score_one(
        "loss", fields={"text": "déjà vu"}, template=TEXT, logprobs=(nats,), token_logprobs=((nats / 2, nats / 2),)
    )
    per_byte, per_token = scores["bits_per_byte"], scores["bits_per_token"]
    assert (per_byte.value, per_byte.weight) == (pytest.approx(2.0), 9.0)
    assert (per_token.value, per_token.weight) == (pytest.approx(9.0), 2.0)


def test_of_a_text_cut_to_the_context_only_bits_per_token_is_known(score_one: ScoreOne) -> None:
    scores = score_one(
        "loss",
        fields={"text": "long"},
        template=TEXT,
        logprobs=(-2.0,),
        token_logprobs=((-2.0,),),
        prompt_truncated=True,
    )
    assert (scores["bits_per_byte"].value, scores["bits_per_byte"].status) == (None, "invalid")
    assert scores["bits_per_token"].value == pytest.approx(2.0 / math.log(2))


@pytest.mark.parametrize(
    ("logprobs", "per_token", "reason"),
    [((0.0,), ((),), "no token was scored"), ((math.nan,), ((math.nan,),), "non-finite logprob")],
)
def test_nothing_to_measure_is_invalid(
    score_one: ScoreOne, logprobs: tuple[float, ...], per_token: tuple[tuple[float, ...], ...], reason: str
) -> None:
    scores = score_one("loss", fields={"text": "x"}, template=TEXT, logprobs=logprobs, token_logprobs=per_token)
    assert {(s.value, s.status, s.reason) for s in scores.values()} == {(None, "invalid", reason)}


def test_two_continuations_are_no_loss(score_one: ScoreOne) -> None:
    with pytest.raises(DataError, match="one continuation, not 2"):
        score_one("loss", fields={"text": "x"}, template=TEXT, logprobs=(-1.0, -2.0), token_logprobs=((-1.0,), (-2.0,)))
