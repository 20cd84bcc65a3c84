"""`keywords:*` and `punctuation:*`."""

from __future__ import annotations

from typing import Any

import pytest

from eval_tasks.scoring.instructions import bind


@pytest.mark.parametrize(
    ("keywords", "text", "followed"),
    [(["Word"], "some words", True), (["a", "z"], "a", False), (["c++"], "I like C++", True), (["a(b"], "a(b", True)],
)
def test_existence(keywords: list[str], text: str, followed: bool) -> None:
    assert bind("keywords:existence", {"keywords": keywords}).followed(text) is followed


@pytest.mark.parametrize(
    ("relation", "frequency", "followed"),
    [("at least", 2, True), ("at least", 3, False), ("less than", 3, True), ("less than", 2, False)],
)
def test_frequency(relation: str, frequency: int, followed: bool) -> None:
    kwargs = {"keyword": "up", "frequency": frequency, "relation": relation}
    assert bind("keywords:frequency", kwargs).followed("Up and upper") is followed


def test_a_frequency_of_zero_stays_zero() -> None:
    kwargs = {"keyword": "up", "frequency": 0, "relation": "at least"}
    assert bind("keywords:frequency", kwargs).followed("down")
    assert not bind("keywords:frequency", {**kwargs, "relation": "less than"}).followed("down")


@pytest.mark.parametrize(
    ("word", "text", "followed"),
    [
        ("bad", "a badge", True),
        ("bad", "Bad luck", False),
        ("5%", "up by 5% now", True),
        ("5%", "up by 5%now", False),
        ("C++", "we use C++", False),
        ("a(b", "a(b", False),
    ],
)
def test_forbidden_words(word: str, text: str, followed: bool) -> None:
    assert bind("keywords:forbidden_words", {"forbidden_words": ["never", word]}).followed(text) is followed


@pytest.mark.parametrize(
    ("letter", "text", "n"),
    [("A", "a banana, A", 5), ("#", "#one # two", 2), ("!", "no", 0), (" e ", "Eerie", 3)],
)
def test_letter_frequency_counts_any_character(letter: str, text: str, n: int) -> None:
    def followed(relation: str, limit: int) -> bool:
        kwargs: dict[str, Any] = {"letter": letter, "let_frequency": limit, "let_relation": relation}
        return bind("keywords:letter_frequency", kwargs).followed(text)

    assert followed("at least", n)
    assert not followed("at least", n + 1)
    assert followed("less than", n + 1)
    assert not followed("less than", n)


@pytest.mark.parametrize(("text", "followed"), [("a, b", False), ("a ، b ， c", True), ("a; b", True)])
def test_no_comma(text: str, followed: bool) -> None:
    assert bind("punctuation:no_comma", {}).followed(text) is followed
