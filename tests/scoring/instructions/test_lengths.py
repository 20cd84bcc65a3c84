"""`length_constraints:*`."""

from __future__ import annotations

import pytest

from eval_tasks.scoring.instructions import bind


def test_number_of_sentences_and_words() -> None:
    abbreviations = "Dr. Smith paid $3.50 to Mr. Jones."
    fewer_than_two = {"num_sentences": 2, "relation": "less than"}
    assert bind("length_constraints:number_sentences", fewer_than_two).followed(abbreviations)
    assert not bind("length_constraints:number_sentences", fewer_than_two).followed("It is. So it is.")
    at_least_six = {"num_words": 6, "relation": "at least"}
    assert bind("length_constraints:number_words", at_least_six).followed("state-of-the-art it's")
    assert not bind("length_constraints:number_words", at_least_six).followed("one two three four 5")


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("one", 1),
        ("one\n\n***\n\ntwo", 2),
        ("***\none\n***\ntwo\n***", 2),
        ("one *** two *** three", 3),
        ("one\n\ntwo", 1),
        ("one\n****\ntwo", 2),
    ],
)
def test_number_of_paragraphs(text: str, n: int) -> None:
    assert bind("length_constraints:number_paragraphs", {"num_paragraphs": n}).followed(text)
    assert not bind("length_constraints:number_paragraphs", {"num_paragraphs": n + 1}).followed(text)


def test_a_blank_paragraph_in_the_middle_fails_at_any_number() -> None:
    text = "one\n***\n***\ntwo"
    assert not any(bind("length_constraints:number_paragraphs", {"num_paragraphs": n}).followed(text) for n in range(5))


@pytest.mark.parametrize(
    ("text", "nth", "followed"),
    [
        ("First.\n\nSecond.", 2, True),
        ('First.\n\n"second, third"', 2, True),
        ("First.\n\n'Second' it is", 2, True),
        ("First.\n\n* second", 2, False),
        ("First.\n\nSecondly.", 2, False),
        ("Second.\n\nFirst.", 1, True),
        ("First.\n\nSecond.\n\nThird.", 2, False),
        ("First.\n\n\n\nSecond.", 2, False),
        ("First. Second.", 2, False),
    ],
)
def test_first_word_of_the_nth_paragraph_of_two(text: str, nth: int, followed: bool) -> None:
    kwargs = {"num_paragraphs": 2, "nth_paragraph": nth, "first_word": "Second"}
    assert bind("length_constraints:nth_paragraph_first_word", kwargs).followed(text) is followed
