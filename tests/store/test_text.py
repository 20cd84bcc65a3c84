"""Text that storage can carry."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_tasks.store.text import storable_text, storable_value


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("plain", "plain"),
        ("é 日本 😀", "é 日本 😀"),
        ("a\ud800b", "a\ufffdb"),
        ("\udc00", "\ufffd"),
        ("\ud83d\ude00", "😀"),
    ],
)
def test_half_a_pair_is_replaced_and_nothing_else(text: str, stored: str) -> None:
    assert storable_text(text) == stored


@settings(derandomize=True, database=None, deadline=None)
@given(st.text(st.characters()))
def test_whatever_comes_out_is_utf8_and_stays(text: str) -> None:
    stored = storable_text(text)
    assert stored.encode("utf-8").decode("utf-8") == storable_text(stored) == stored


def test_every_string_of_a_value_is_covered() -> None:
    value = {"a\ud800": ["\ud800", {"b": ("\ud800", 1, None, 2.5, True)}]}
    assert storable_value(value) == {"a\ufffd": ["\ufffd", {"b": ["\ufffd", 1, None, 2.5, True]}]}
