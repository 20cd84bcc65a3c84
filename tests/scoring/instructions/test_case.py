"""`change_case:*`: the case alone decides."""

from __future__ import annotations

import pytest

from eval_tasks.scoring.instructions import bind


@pytest.mark.parametrize(
    ("text", "capital", "lower"),
    [
        ("ALL CAPITALS, 5!", True, False),
        ("all lower", False, True),
        ("Mixed", False, False),
        ("1 2 3", False, False),
        ("NUR GROSSE BUCHSTABEN", True, False),
    ],
)
def test_case(text: str, capital: bool, lower: bool) -> None:
    assert bind("change_case:english_capital", {}).followed(text) is capital
    assert bind("change_case:english_lowercase", {}).followed(text) is lower


def test_capital_word_frequency_counts_tokens_in_capitals() -> None:
    def followed(text: str, n: int, relation: str) -> bool:
        kwargs = {"capital_frequency": n, "capital_relation": relation}
        return bind("change_case:capital_word_frequency", kwargs).followed(text)

    text = "NASA's A-OK. U.S. policy, Mixed IT"
    assert followed(text, 4, "at least")
    assert not followed(text, 5, "at least")
    assert not followed(text, 4, "less than")
