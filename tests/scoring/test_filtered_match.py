"""One pipeline, then exact match against any reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eval_tasks.errors import UserError
from eval_tasks.records import Score, ScorerRef
from eval_tasks.scoring import scorer_digest, validate_scorer

ScoreOne = Callable[..., dict[str, Score]]
YES = {"function": "regex", "regex_pattern": "(yes|no)"}


@pytest.mark.parametrize(
    ("output", "target", "parameters", "value", "extracted"),
    [
        ("well, yes", "yes", {"steps": [YES]}, 1, "yes"),
        ("well", "yes", {"steps": [YES]}, 0, "[invalid]"),
        ("well, no", ["yes", "no"], {"steps": [YES]}, 1, "no"),
        ("Yes!", "yes", {"ignore_case": True, "ignore_punctuation": True}, 1, "Yes!"),
        ("3", 3, {}, 1, "3"),
    ],
)
def test_filtered_match(
    score_one: ScoreOne, output: str, target: Any, parameters: dict[str, Any], value: int, extracted: str
) -> None:
    found = score_one("filtered_match", target=target, output=output, parameters=parameters)["exact_match"]
    assert (found.value, found.extracted) == (value, extracted)


def test_its_parameters_are_checked_and_are_part_of_its_digest() -> None:
    def ref(**parameters: Any) -> ScorerRef:
        return ScorerRef(name="filtered_match", version="1", parameters=parameters)

    with pytest.raises(UserError, match="steps: no filter 'regx'"):
        validate_scorer(ref(steps=[{"function": "regx"}]), "generation")
    with pytest.raises(UserError, match="regexes_to_ignore"):
        validate_scorer(ref(regexes_to_ignore=["("]), "generation")
    assert scorer_digest(ref(steps=[YES])) != scorer_digest(ref())
