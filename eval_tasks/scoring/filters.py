"""Steps that take an answer out of an output, as lm-eval 0.4.9's filters do, and its exact match.

A step is a mapping with `function` and its arguments, as a benchmark's YAML file writes it:
``{function: regex, regex_pattern: "#### ([0-9]+)", group_select: -1}``. Knows no scorer and no benchmark.
"""

from __future__ import annotations

import re
import string
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from eval_tasks.errors import UserError, did_you_mean

Step = Mapping[str, Any]

MATCH_PARAMETERS: Mapping[str, Any] = {
    "regexes_to_ignore": [],
    "ignore_case": False,
    "ignore_punctuation": False,
    "ignore_numbers": False,
}
"""How texts are put into one form before they are compared, in this order."""

_REGEX = {"regex_pattern": r"#### (\-?[0-9\.\,]+)", "group_select": 0, "fallback": "[invalid]"}
STEPS: Mapping[str, Mapping[str, Any]] = {
    "regex": _REGEX,
    "multi_choice_regex": {**_REGEX, "ignore_case": False, "ignore_punctuation": False, "regexes_to_ignore": []},
    "remove_whitespace": {},
    "lowercase": {},
    "uppercase": {},
    "map": {"mapping_dict": {}, "default_value": ""},
    "take_first": {},
}
"""The steps by name, each with the default of every argument."""

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_NO_DIGITS = str.maketrans("", "", string.digits)


def check_steps(parameter: str, steps: Sequence[Any]) -> None:
    """Raise UserError naming the step that is unknown, takes no such argument, or holds no pattern."""
    for step in steps:
        if not isinstance(step, Mapping) or "function" not in step:
            raise UserError(f"{parameter}: {step!r} is no step: write {{function: NAME, ...}}")
        name = step["function"]
        if name not in STEPS:
            raise UserError(f"{parameter}: no filter {name!r}; {did_you_mean(str(name), STEPS)}")
        for argument, value in step.items():
            if argument == "function":
                continue
            if argument not in STEPS[name]:
                raise UserError(f"{parameter}: {name} takes no {argument!r}; {did_you_mean(argument, STEPS[name])}")
            if type(value) is not type(STEPS[name][argument]):
                wanted = type(STEPS[name][argument]).__name__
                raise UserError(f"{parameter}: {argument} of {name} is {value!r}, and takes {wanted}")
        check_patterns(parameter, [step[a] for a in ("regex_pattern",) if a in step])
        check_patterns(parameter, step.get("regexes_to_ignore", []))


def check_patterns(parameter: str, patterns: Sequence[Any]) -> None:
    """Raise UserError for a pattern that is none."""
    for pattern in patterns:
        try:
            re.compile(pattern)
        except (re.error, TypeError) as error:
            raise UserError(f"{parameter}: {pattern!r} is no regular expression: {error}") from error


def filtered(output: str, steps: Sequence[Step], choices: Sequence[str] = ()) -> str:
    """What the steps, one after the other, make of an output. `choices`: the item's, for multi_choice_regex."""
    text = output
    for step in steps:
        name = step["function"]
        arguments = {**STEPS[name], **{k: v for k, v in step.items() if k != "function"}}
        match name:
            case "regex":
                found = _select(re.findall(arguments["regex_pattern"], text), arguments)
                text = str(arguments["fallback"]) if found is None else found
            case "multi_choice_regex":
                text = _chosen(text, arguments, choices)
            case "remove_whitespace":
                text = text.lstrip()
            case "lowercase":
                text = text.lower()
            case "uppercase":
                text = text.upper()
            case "map":
                text = str(arguments["mapping_dict"].get(text, arguments["default_value"]))
    return text


def matches(given: str, references: Sequence[str], parameters: Mapping[str, Any]) -> bool:
    """Whether `given` equals a reference, all in the form that `MATCH_PARAMETERS` describe."""
    form = _form(parameters)
    return form(given) in [form(reference) for reference in references]


def _form(parameters: Mapping[str, Any]) -> Callable[[str], str]:
    def form(text: str) -> str:
        for pattern in parameters["regexes_to_ignore"]:
            text = re.sub(pattern, "", text)
        text = text.lower() if parameters["ignore_case"] else text
        text = text.translate(_NO_PUNCTUATION) if parameters["ignore_punctuation"] else text
        return text.translate(_NO_DIGITS) if parameters["ignore_numbers"] else text

    return form


def _select(found: Sequence[Any], arguments: Mapping[str, Any]) -> str | None:
    """The chosen match, stripped; of several groups the first that is not empty. None where there is no match.

    In lm-eval a position beyond the matches ends the run; here it is no match.
    """
    position = arguments["group_select"]
    if not -len(found) <= position < len(found):
        return None
    match = found[position]
    if isinstance(match, tuple):
        match = next((group for group in match if group), None)
    return None if match is None else str(match).strip()


def _chosen(text: str, arguments: Mapping[str, Any], choices: Sequence[str]) -> str:
    """The letter in brackets: by the pattern, else by a choice's text, else by a letter after a colon."""
    if found := _select(re.findall(arguments["regex_pattern"], text), arguments):
        return found

    def plain(part: str) -> str:
        for pattern in arguments["regexes_to_ignore"]:
            part = re.sub(pattern, "", part)
        part = part.lower() if arguments["ignore_case"] else part
        return part.translate(_every_punctuation()) if arguments["ignore_punctuation"] else part

    letters = list(string.ascii_uppercase[: len(choices)])
    by_text = {plain(choice.strip()): f"({letter})" for choice, letter in zip(choices, letters, strict=False)}
    texts = "|".join(re.escape(plain(choice.strip())) for choice in choices)
    if choices and (found := _select(re.findall(texts, plain(text)), arguments)):
        return by_text.get(found, found)
    if choices and (found := _select(re.findall(rf":[\s]*({'|'.join(letters)})", text), arguments)):
        return f"({found})"
    return str(arguments["fallback"])


@cache
def _every_punctuation() -> dict[int, None]:
    return {i: None for i in range(sys.maxunicode) if unicodedata.category(chr(i)).startswith("P")}
