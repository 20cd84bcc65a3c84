"""acc and acc_norm by lm-eval 0.4.9's convention."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest

from eval_tasks.errors import DataError
from eval_tasks.records import Score

ScoreOne = Callable[..., dict[str, Score]]
LETTERS = {"choices": ("A", "B", "C", "D")}


def test_the_highest_logprob_wins(score_one: ScoreOne) -> None:
    scores = score_one("choice", target=1, template=LETTERS, logprobs=(-3.0, -1.0, -2.0, -4.0))
    assert (scores["acc"].value, scores["acc"].extracted, scores["acc"].detail) == (1.0, "B", "")
    assert score_one("choice", target=2, template=LETTERS, logprobs=(-3.0, -1.0, -2.0, -4.0))["acc"].value == 0.0


def test_acc_norm_divides_by_code_points_without_the_delimiter(score_one: ScoreOne) -> None:
    # bytes (5 and 6) or a counted delimiter (6 and 4) would turn the second choice's advantage around
    fields = {"options": ["plain", "éé́"]}
    scores = score_one("choice", target=0, fields=fields, template={"choices": "options"}, logprobs=(-5.0, -3.3))
    assert (scores["acc"].value, scores["acc"].extracted) == (0.0, "1")
    assert (scores["acc_norm"].value, scores["acc_norm"].extracted) == (1.0, "0")


def test_choices_are_rendered_over_the_item(score_one: ScoreOne) -> None:
    template = {"choices": ("{{ options[1] }}", "{{ options[0] }}")}
    scores = score_one("choice", target=0, fields={"options": ["no", "yes"]}, template=template, logprobs=(-1.0, -2.0))
    assert (scores["acc"].value, scores["acc"].extracted) == (1.0, "0")


def test_a_tie_goes_to_the_lowest_index_and_is_flagged(score_one: ScoreOne) -> None:
    scores = score_one("choice", target=2, template=LETTERS, logprobs=(-3.0, -1.0, -1.0, -4.0))
    assert (scores["acc"].value, scores["acc"].extracted) == (0.0, "B")
    assert json.loads(scores["acc"].detail) == {"tied": [1, 2]}


@pytest.mark.parametrize("bad", [math.nan, -math.inf, math.inf])
def test_a_non_finite_logprob_is_invalid_and_never_wins(score_one: ScoreOne, bad: float) -> None:
    scores = score_one("choice", target=0, template=LETTERS, logprobs=(bad, -1.0, -2.0, -3.0))
    assert {(s.value, s.status, s.reason) for s in scores.values()} == {(0.0, "invalid", "non-finite logprob")}


def test_an_empty_choice_is_invalid(score_one: ScoreOne) -> None:
    scores = score_one("choice", target=0, fields={"o": ["a", " "]}, template={"choices": "o"}, logprobs=(-1.0, -2.0))
    assert {(s.value, s.status, s.reason) for s in scores.values()} == {(0.0, "invalid", "empty choice")}


def test_several_gold_choices_match_any(score_one: ScoreOne) -> None:
    scores = score_one("choice", target=[0, 3], template=LETTERS, logprobs=(-3.0, -4.0, -5.0, -1.0))
    assert scores["acc"].value == 1.0


@pytest.mark.parametrize("target", [4, -1, "B", None, True])
def test_a_target_that_is_no_index_is_refused(score_one: ScoreOne, target: object) -> None:
    with pytest.raises(DataError, match="item 'item-7' has target"):
        score_one("choice", target=target, template=LETTERS, logprobs=(-1.0, -2.0, -3.0, -4.0))


def test_too_few_logprobs_are_refused(score_one: ScoreOne) -> None:
    with pytest.raises(DataError, match="4 choices and 3 logprobs"):
        score_one("choice", target=0, template=LETTERS, logprobs=(-1.0, -2.0, -3.0))
