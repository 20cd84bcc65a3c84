"""Patterns as references: search and whole match, several of them, and data that holds no pattern."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eval_tasks.errors import DataError, UserError
from eval_tasks.records import Item, Score, ScorerRef
from eval_tasks.scoring import check_items

ScoreOne = Callable[..., dict[str, Score]]


@pytest.mark.parametrize(
    ("output", "target", "parameters", "value", "extracted"),
    [
        ("It is Paris.", r"\bParis\b", {}, 1, "Paris"),
        ("Parisian", r"\bParis\b", {}, 0, None),
        ("paris", "Paris", {}, 0, None),
        ("paris", "Paris", {"ignore_case": True}, 1, "paris"),
        ("It is Paris.", "Paris", {"whole": True}, 0, None),
        (" Paris\n", "Paris", {"whole": True}, 1, "Paris"),
        (" Paris\n", "Paris", {"whole": True, "strip": False}, 0, None),
        ("Lutetia", ["Paris", "Lut.tia"], {}, 1, "Lutetia"),
        ("12 apples", r"(\d+) apples", {}, 1, "12 apples"),
        ("", "Paris", {}, 0, None),
    ],
)
def test_regex(
    score_one: ScoreOne, output: str, target: Any, parameters: dict[str, Any], value: int, extracted: str | None
) -> None:
    found = score_one("regex", target=target, output=output, parameters=parameters)["regex_match"]
    assert (found.value, found.extracted) == (value, extracted)


def test_what_is_no_pattern_is_refused_at_loading() -> None:
    ref = ScorerRef(name="regex", version="1")
    with pytest.raises(UserError, match=r"item 'q1': '\(a' is no regular expression: .*unterminated"):
        check_items(ref, [Item(item_id="q1", fields={}, target=["a", "(a"])])
    with pytest.raises(DataError, match="item 'q1' has no reference answer"):
        check_items(ref, [Item(item_id="q1", fields={})])
