"""IFEval: strict and loose, skipped instructions."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_tasks import __version__
from eval_tasks.errors import UserError
from eval_tasks.records import Item, Score, ScorerRef
from eval_tasks.scoring import check_items
from eval_tasks.scoring.ifeval import instructions_of, loose_variants
from eval_tasks.scoring.instructions import instruction_ids

ScoreOne = Callable[..., dict[str, Score]]
REF = ScorerRef(name="ifeval", version="1")
GERMAN = ("language:response_language", {"language": "de"})
NO_COMMA = ("punctuation:no_comma", {})
ONE_WORD = ("length_constraints:number_words", {"relation": "less than", "num_words": 2})


def fields_of(*instructions: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"instruction_id_list": [i[0] for i in instructions], "kwargs": [i[1] for i in instructions], "prompt": "p"}


def item_of(*instructions: tuple[str, dict[str, Any]]) -> Item:
    return Item(item_id="q1", fields=fields_of(*instructions))


def test_prompt_level_wants_all_instruction_level_weighs_each(score_one: ScoreOne) -> None:
    scores = score_one("ifeval", fields=fields_of(NO_COMMA, ONE_WORD), output="two words")
    assert (scores["prompt_strict"].value, scores["prompt_strict"].weight) == (0.0, 1.0)
    assert (scores["inst_strict"].value, scores["inst_strict"].weight) == (0.5, 2.0)
    assert json.loads(scores["inst_strict"].detail) == [True, False]


def test_the_same_instruction_twice_stays_two(score_one: ScoreOne) -> None:
    twice = [("keywords:frequency", {"keyword": k, "frequency": 1, "relation": "at least"}) for k in ("yes", "no")]
    scores = score_one("ifeval", fields=fields_of(*twice), output="yes")
    assert json.loads(scores["prompt_strict"].detail) == [True, False]


def test_loose_forgives_an_introduction_and_asterisks(score_one: ScoreOne) -> None:
    scores = score_one("ifeval", fields=fields_of(("detectable_format:json_format", {})), output="Sure:\n**[1]**\nBye")
    assert [scores[m].value for m in ("prompt_strict", "prompt_loose", "inst_strict", "inst_loose")] == [0, 1, 0, 1]


def test_language_instructions_are_skipped_and_the_rest_is_scored(score_one: ScoreOne) -> None:
    scores = score_one("ifeval", fields=fields_of(GERMAN, NO_COMMA), output="gut")
    assert json.loads(scores["prompt_strict"].detail) == [None, True]
    assert (scores["prompt_strict"].value, scores["inst_loose"].weight) == (1.0, 1.0)


@pytest.mark.parametrize("status", ["ok", "invalid", "missing"])
def test_a_wholly_skipped_prompt_is_excluded_from_strict_and_loose(score_one: ScoreOne, status: str) -> None:
    scores = score_one("ifeval", fields=fields_of(GERMAN), output="gut", status=status)
    assert {(s.value, s.status) for s in scores.values()} == {(None, "excluded")}
    assert len(scores) == 4
    assert "language detection" in scores["prompt_strict"].reason


def test_an_invalid_response_weighs_its_instructions(score_one: ScoreOne) -> None:
    scores = score_one("ifeval", fields=fields_of(GERMAN, NO_COMMA, ONE_WORD), status="invalid", reason="NaN")
    assert (scores["inst_strict"].value, scores["inst_strict"].weight, scores["inst_strict"].status) == (
        0,
        2,
        "invalid",
    )


def test_loading_warns_once_with_the_number_of_skipped_constraints(caplog: pytest.LogCaptureFixture) -> None:
    release = ".".join(__version__.split(".")[:2])
    with caplog.at_level(logging.WARNING):
        check_items(REF, [item_of(GERMAN), item_of(NO_COMMA, GERMAN), item_of(NO_COMMA)])
    assert caplog.messages == [f"IFEval: skipping 2 language-detection constraints (unsupported in v{release})"]
    caplog.clear()
    check_items(REF, [item_of(NO_COMMA)])
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            fields_of(("punctuation:no_coma", {})),
            "unknown instruction 'punctuation:no_coma'; close: 'punctuation:no_comma'",
        ),
        (
            fields_of(("length_constraints:number_words", {"relation": "at most", "num_words": 3})),
            "relation is 'at most': must be 'less than' or 'at least'",
        ),
        (fields_of(("keywords:existence", {})), "'keywords:existence' lacks its argument 'keywords'"),
        (fields_of(("punctuation:no_comma", {"n": 3})), "'punctuation:no_comma' takes no 'n'"),
        (fields_of(("keywords:existence", {"keywords": "word"})), "must be a list of strings"),
        ({"instruction_id_list": ["punctuation:no_comma"], "kwargs": []}, "kwargs must be a list of 1 mappings"),
        ({"instruction_id_list": "punctuation:no_comma", "kwargs": [{}]}, "must be a list of ids"),
        ({"instruction_id_list": ["punctuation:no_comma"], "kwargs": ["x"]}, "kwargs must be a list of 1 mappings"),
        ({"instruction_id_list": [3], "kwargs": [{}]}, "must be a list of ids"),
        ({"instruction_id_list": ["punctuation:no_comma"], "kwargs": "[{"}, "kwargs is not JSON"),
        ({}, "must be a list of ids, not None"),
    ],
)
def test_what_cannot_be_checked_is_refused_by_name(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        check_items(REF, [Item(item_id="q9", fields=fields)])
    assert "item 'q9'" in str(caught.value)
    assert message in str(caught.value)


def test_kwargs_may_be_json_text_and_nulls_count_as_absent() -> None:
    kwargs = json.dumps([{"relation": "at least", "num_words": 3.0, "keywords": None}])
    item = Item(item_id="q1", fields={"instruction_id_list": ["length_constraints:number_words"], "kwargs": kwargs})
    (found,) = instructions_of(item)
    assert found is not None
    assert found.arguments == {"relation": "at least", "num_words": 3}


def test_every_kind_but_the_language_one_is_there() -> None:
    assert len(instruction_ids()) == 24


INSTRUCTIONS = st.sampled_from(
    [
        NO_COMMA,
        ONE_WORD,
        ("detectable_format:title", {}),
        ("change_case:english_lowercase", {}),
        ("startend:quotation", {}),
        ("combination:two_responses", {}),
        ("detectable_format:number_bullet_lists", {"num_bullets": 1}),
        ("keywords:forbidden_words", {"forbidden_words": ["C++", "5%", "a(b"]}),
    ]
)


@given(text=st.text(alphabet="aB ,*\n\"<>-.'1", max_size=40), instruction=INSTRUCTIONS)
def test_what_holds_strictly_holds_loosely(text: str, instruction: tuple[str, dict[str, Any]]) -> None:
    (found,) = instructions_of(item_of(instruction))
    assert found is not None
    assert not found.followed(text) or any(map(found.followed, loose_variants(text)))
