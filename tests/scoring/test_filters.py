"""Each step as lm-eval 0.4.9's filter of that name gives it, traps included, and arguments that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from eval_tasks.errors import UserError
from eval_tasks.scoring.filters import MATCH_PARAMETERS, check_steps, filtered, matches

FLEXIBLE = {"function": "regex", "group_select": -1, "regex_pattern": "(-?[$0-9.,]{2,})|(-?[0-9]+)"}
LETTER = {"function": "multi_choice_regex", "group_select": -1, "regex_pattern": r"(\([A-Z]\))"}


@pytest.mark.parametrize(
    ("output", "steps", "text"),
    [
        ("#### 12 #### 34", [{"function": "regex"}], "12"),
        ("none", [{"function": "regex"}], "[invalid]"),
        ("none", [{"function": "regex", "fallback": "?"}], "?"),
        ("18 ...", [FLEXIBLE], "..."),
        ("5 then 7", [FLEXIBLE], "7"),
        ("a= ", [{"function": "regex", "regex_pattern": "a=(.*)"}], ""),
        ("x", [{"function": "regex", "regex_pattern": "(a)?x(b)?"}], "[invalid]"),
        ("1 2", [{"function": "regex", "regex_pattern": "[0-9]", "group_select": 5}], "[invalid]"),
        ("  a ", [{"function": "remove_whitespace"}, {"function": "take_first"}], "a "),
        ("Ab", [{"function": "lowercase"}], "ab"),
        ("Ab", [{"function": "uppercase"}], "AB"),
        ("b", [{"function": "map", "mapping_dict": {"a": "1", "b": "2"}, "default_value": "0"}], "2"),
        ("c", [{"function": "map", "mapping_dict": {"a": "1"}, "default_value": "0"}], "0"),
        ("first (A) then (B)", [LETTER], "(B)"),
        ("it is blue", [LETTER], "(B)"),
        ("It is BLUE!", [{**LETTER, "ignore_case": True}], "(B)"),
        ("answer:  A", [LETTER], "(A)"),
        ("no idea", [LETTER], "[invalid]"),
        ("as is ", [], "as is "),
    ],
)
def test_steps(output: str, steps: list[dict[str, Any]], text: str) -> None:
    check_steps("steps", steps)
    assert filtered(output, steps, ["red", "blue"]) == text


def test_choices_beyond_the_alphabet_do_no_harm() -> None:
    assert filtered("<27>", [LETTER], [f"<{n}>" for n in range(30)]) == "<27>"


@pytest.mark.parametrize(
    ("given", "reference", "parameters", "right"),
    [
        ("$1,234.", "Half.\n#### 1234", {"regexes_to_ignore": [",", r"\$", r"(?s).*#### ", r"\.$"]}, True),
        ("A", "a", {}, False),
        ("A", "a", {"ignore_case": True}, True),
        ("(a)", "a", {"ignore_punctuation": True}, True),
        ("a1", "a2", {"ignore_numbers": True}, True),
        (" a", "a", {}, False),
    ],
)
def test_exact_match(given: str, reference: str, parameters: dict[str, Any], right: bool) -> None:
    assert matches(given, ["other", reference], {**MATCH_PARAMETERS, **parameters}) is right


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("regex", "is no step"),
        ({"function": "regx"}, "no filter 'regx'; close: 'regex'"),
        ({"function": "regex", "pattern": "a"}, "regex takes no 'pattern'; close: 'regex_pattern'"),
        ({"function": "regex", "group_select": "0"}, "takes int"),
        ({"function": "regex", "regex_pattern": "("}, "no regular expression"),
        ({"function": "multi_choice_regex", "regexes_to_ignore": ["("]}, "no regular expression"),
    ],
)
def test_wrong_steps_are_named(step: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_steps("steps", [step])
