"""Arguments are validated: an instruction that cannot be checked is an error, never a pass."""

from __future__ import annotations

from typing import Any

import pytest

from eval_tasks.errors import UserError
from eval_tasks.scoring.instructions import bind, instruction_ids, is_skipped


@pytest.mark.parametrize("instruction_id", instruction_ids())
@pytest.mark.parametrize("text", ["", " \n\t "])
def test_a_blank_response_follows_nothing(instruction_id: str, text: str) -> None:
    kwargs: dict[str, Any] = {
        "relation": "less than", "let_relation": "less than", "capital_relation": "less than",
        "keyword": "a", "keywords": ["a"], "forbidden_words": ["a"], "letter": "a", "first_word": "a",
        "frequency": 9, "let_frequency": 9, "capital_frequency": 9, "num_sentences": 9, "num_words": 9,
        "num_paragraphs": 0, "nth_paragraph": 1, "num_placeholders": 0, "postscript_marker": "P.S.",
        "num_bullets": 0, "num_highlights": 0, "section_spliter": "S", "num_sections": 0,
        "prompt_to_repeat": "a", "end_phrase": "a",
    }  # fmt: skip
    while True:
        try:
            found = bind(instruction_id, kwargs)
            break
        except UserError as error:
            kwargs.pop(str(error).partition(" takes no '")[2].partition("'")[0])
    assert not found.followed(text)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (-1, "whole number"),
        (1.5, "whole number"),
        (True, "whole number"),
        ("3", "whole number"),
        (float("nan"), "whole"),
        (float("inf"), "whole"),
    ],
)
def test_a_count_that_is_none_is_refused(value: Any, problem: str) -> None:
    with pytest.raises(UserError, match=rf"'detectable_format:number_bullet_lists': num_bullets is .*{problem}"):
        bind("detectable_format:number_bullet_lists", {"num_bullets": value})


def test_positions_letters_and_relations_are_checked() -> None:
    first = {"num_paragraphs": 1, "nth_paragraph": 0, "first_word": "a"}
    with pytest.raises(UserError, match="nth_paragraph is 0: must be a whole number, at least 1"):
        bind("length_constraints:nth_paragraph_first_word", first)
    letter = {"letter": "ab", "let_frequency": 1, "let_relation": "at least"}
    with pytest.raises(UserError, match="letter is 'ab': must be one character"):
        bind("keywords:letter_frequency", letter)
    with pytest.raises(UserError, match=r"let_relation is 'at leest': must be .* close: 'at least'"):
        bind("keywords:letter_frequency", {**letter, "letter": "a", "let_relation": "at leest"})


def test_only_language_instructions_are_skipped() -> None:
    assert is_skipped("language:response_language")
    assert not any(map(is_skipped, instruction_ids()))
