"""Two pipelines on one output; with GSM8K's filters they are gsm8k's strict and flexible."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eval_tasks.errors import UserError
from eval_tasks.records import Score, ScorerRef
from eval_tasks.scoring import validate_scorer
from eval_tasks.scoring.vector_file import read_vectors

ScoreOne = Callable[..., dict[str, Score]]
GSM8K = {
    "strict_steps": [{"function": "regex", "regex_pattern": r"#### (\-?[0-9\.\,]+)"}, {"function": "take_first"}],
    "flexible_steps": [
        {"function": "regex", "group_select": -1, "regex_pattern": "(-?[$0-9.,]{2,})|(-?[0-9]+)"},
        {"function": "take_first"},
    ],
    "ignore_case": True,
    "regexes_to_ignore": [",", r"\$", r"(?s).*#### ", r"\.$"],
}


def test_gsm8k_by_its_filters_is_gsm8k(score_one: ScoreOne) -> None:
    for case in read_vectors("gsm8k")["cases"]:
        target, output = case["item"]["target"], case["response"].get("output", "")
        parts = {"target": target, "output": output, "template": {"stop": ["Question:"]}}
        ours = score_one("gsm8k", **parts)
        by_filters = score_one("strict_flexible", parameters=GSM8K, **parts)
        for metric in ("strict", "flexible"):
            assert by_filters[metric].value == ours[metric].value, (metric, output)


def test_both_pipelines_are_checked() -> None:
    for name in ("strict_steps", "flexible_steps"):
        with pytest.raises(UserError, match=f"{name}: no filter"):
            validate_scorer(
                ScorerRef(name="strict_flexible", version="1", parameters={name: [{"function": "x"}]}), "generation"
            )
