"""What holds for every scorer: statuses, weights, stop strings, text that cannot be encoded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eval_tasks.errors import DataError, UserError
from eval_tasks.records import Score
from eval_tasks.scoring.marking import clean_text, cut_at_stops

ScoreOne = Callable[..., dict[str, Score]]


@pytest.mark.parametrize("status", ["missing", "excluded"])
def test_a_lost_answer_has_no_value(score_one: ScoreOne, status: str) -> None:
    scores = score_one("gsm8k", target="5", output="5", status=status, reason="pod lost")
    assert {(s.value, s.status, s.reason) for s in scores.values()} == {(None, status, "pod lost")}


def test_an_invalid_answer_is_wrong_where_more_is_better_and_nothing_for_a_loss(score_one: ScoreOne) -> None:
    choice = score_one("choice", target=0, template={"choices": ("A", "B")}, status="invalid", reason="NaN")
    assert {(s.value, s.status, s.reason) for s in choice.values()} == {(0.0, "invalid", "NaN")}
    loss = score_one("loss", status="invalid", reason="NaN")
    assert {(s.value, s.status) for s in loss.values()} == {(None, "invalid")}


def test_rows_carry_item_stratum_and_cluster(score_one: ScoreOne) -> None:
    row = score_one("exact_match", target="x", output="x")["exact_match"]
    assert (row.benchmark_id, row.item_id, row.stratum, row.cluster, row.weight) == ("b", "item-7", "s", "c", 1.0)


def test_a_response_to_another_item_is_refused(score_one: ScoreOne) -> None:
    with pytest.raises(DataError, match="response to item 'other' met item 'item-7'"):
        score_one("exact_match", target="x", output="x", item_id="other")


def test_stored_text_is_cut_at_the_first_stop_again(score_one: ScoreOne) -> None:
    run_on = "The answer is 12.\n\nQuestion: What is 2 + 3?\nAnswer: 5"
    assert score_one("gsm8k", target="12", output=run_on)["flexible"].value == 0
    stops = {"stop": ("Question:", "</s>")}
    assert score_one("gsm8k", target="12", output=run_on, template=stops)["flexible"].value == 1
    assert cut_at_stops("a</s>b Question: c", ["Question:", "</s>", ""]) == "a"


@pytest.mark.parametrize("stop", ["Question:", None, (7,), {"Question:": 1}])
def test_stops_that_are_no_list_are_refused(score_one: ScoreOne, stop: object) -> None:
    with pytest.raises(UserError, match="must be a list of strings, not "):
        score_one("gsm8k", target="12", output="12", template={"stop": stop})


def test_lone_surrogates_become_replacement_characters(score_one: ScoreOne) -> None:
    row = score_one("exact_match", target="x", output="x\ud83d")["exact_match"]
    assert row.extracted == "x�"
    assert clean_text("\ud83d\ude00 and 😀").encode() == "�� and 😀".encode()


@pytest.mark.parametrize("output", ["", "\ud800", "\x00", " \n\t"])
def test_odd_outputs_score_and_never_crash(score_one: ScoreOne, output: str) -> None:
    assert score_one("gsm8k", target="5", output=output)["numeric"].value == 0
    assert score_one("exact_match", target="5", output=output)["exact_match"].value == 0
    fields = {"instruction_id_list": ["detectable_format:json_format"], "kwargs": [{}]}
    assert score_one("ifeval", fields=fields, output=output)["prompt_loose"].value == 0


@pytest.mark.parametrize("output", ["", "\ud800", "#### \udfff", "\x00", " \n\t", "9" * 5000, "((((", "\\", "#### -"])
@pytest.mark.parametrize(
    ("scorer", "parameters"),
    [
        ("regex", {}),
        ("numeric", {}),
        ("filtered_match", {"steps": [{"function": "regex"}, {"function": "take_first"}]}),
        ("strict_flexible", {}),
        ("gsm8k", {}),
    ],
)
def test_no_output_crashes_a_scorer_of_texts(
    score_one: ScoreOne, scorer: str, parameters: dict[str, Any], output: str
) -> None:
    marks = score_one(scorer, target="5", output=output, parameters=parameters)
    assert {(mark.status, mark.value) for mark in marks.values()} == {("ok", 0.0)}
    for mark in marks.values():
        (mark.extracted or "").encode()  # no lone surrogate is left


def test_an_empty_output_is_right_only_where_nothing_is_the_reference(score_one: ScoreOne) -> None:
    assert score_one("exact_match", target="", output="  ")["exact_match"].value == 1
    assert score_one("exact_match", target="5", output="")["exact_match"].value == 0
