"""Exact match, its options, several references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eval_tasks.errors import DataError
from eval_tasks.records import Score

ScoreOne = Callable[..., dict[str, Score]]


@pytest.mark.parametrize(
    ("output", "target", "parameters", "value"),
    [
        ("Paris", "Paris", {}, 1),
        (" Paris\n", "Paris", {}, 1),
        (" Paris\n", "Paris", {"strip": False}, 0),
        ("paris", "Paris", {}, 0),
        ("paris", "Paris", {"ignore_case": True}, 1),
        ("STRASSE", "straße", {"ignore_case": True}, 1),
        ("Paris.", "Paris", {}, 0),
        ("Paris.", "Paris", {"ignore_punctuation": True}, 1),
        ("New  York", "New York", {}, 0),
        ("New \n York", "New York", {"collapse_spaces": True}, 1),
        ("Paris", ["Lutetia", "Paris"], {}, 1),
        ("Rome", ["Lutetia", "Paris"], {}, 0),
        ("4", 4, {}, 1),
        ("", "Paris", {}, 0),
    ],
)
def test_exact_match(score_one: ScoreOne, output: str, target: Any, parameters: dict[str, Any], value: int) -> None:
    assert score_one("exact_match", target=target, output=output, parameters=parameters)["exact_match"].value == value


@pytest.mark.parametrize("target", [None, [], ["Paris", None]])
def test_no_reference_answer_is_refused(score_one: ScoreOne, target: Any) -> None:
    with pytest.raises(DataError, match="item 'item-7' has no reference answer"):
        score_one("exact_match", target=target, output="Paris")
