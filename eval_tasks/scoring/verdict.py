"""A judge's response -> its verdict's value: of a fixed set of answers, by logprob, or by a line of its reply.

No verdict is ever guessed: a tie of answers with different values, a reply without a verdict line, a verdict that is no
answer of the set, or a judge's prompt that was cut leaves the item ``invalid`` with the reason.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from eval_tasks.errors import DataError, UserError
from eval_tasks.registry.templates import render_choices
from eval_tasks.scoring.registry import Case, Mark, MetricInfo, Unscoreable, scorer

PATTERN = r"(?im)^[ \t*_#>]*verdict[ \t*_]*:([^\n]*)$"
"""The verdict line where a judge names no other: ``Verdict: yes``, in any case, bold or not."""

_AROUND = " \t\r\n*_.`'\""


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Raise UserError unless the answers are a set with values from 0 to 1, and the pattern has a group."""
    answers = parameters["answers"]
    if len(answers) < 2:
        raise UserError(f"answers: {len(answers)} of them; a verdict is one of at least two")
    for answer, value in answers.items():
        if not answer.strip():
            raise UserError(f"answers: {answer!r} is blank: nothing would be read of it")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise UserError(f"answers: {answer!r} has the value {value!r}; give a number from 0 to 1")
    if len(set(answers.values())) < 2:
        raise UserError("answers: all have one value, so that no verdict says anything")
    try:
        groups = re.compile(parameters["pattern"]).groups
    except re.error as error:
        raise UserError(f"pattern {parameters['pattern']!r} is no regular expression: {error}") from error
    if groups < 1:
        raise UserError(f"pattern {parameters['pattern']!r} has no group: put the verdict in parentheses")


@scorer(
    "verdict",
    version="1",
    kinds=("choice", "generation"),
    metrics={"verdict": MetricInfo(binary=False)},
    parameters={"answers": {" Yes": 1.0, " No": 0.0}, "pattern": PATTERN},
    check_parameters=check_parameters,
)
def verdict(case: Case) -> list[Mark]:
    """The value of the verdict; `extracted` is the answer."""
    if case.response.prompt_truncated:
        raise Unscoreable("the judge's prompt was cut to its context")
    answers: Mapping[str, float] = case.parameters["answers"]
    answer = _likeliest(case, answers) if case.template.choices else _stated(case, answers)
    return [Mark(metric="verdict", value=float(answers[answer]), extracted=answer)]


def stated_form(text: str) -> str:
    """An answer as a verdict line may write it: without case, blanks, marks of emphasis, quotes and full stops."""
    return text.strip(_AROUND).casefold()


def _likeliest(case: Case, answers: Mapping[str, float]) -> str:
    texts, logprobs = render_choices(case.template.choices, case.rendering), case.response.logprobs
    if len(logprobs) != len(texts):
        raise DataError(f"item {case.item.item_id!r} has {len(texts)} answers and {len(logprobs)} logprobs")
    if unknown := [text for text in texts if text not in answers]:
        raise Unscoreable(f"choice {unknown[0]!r} is no answer of the set")
    if not all(math.isfinite(value) for value in logprobs):
        raise Unscoreable("non-finite logprob of an answer")
    best = max(logprobs)
    tied = [text for text, value in zip(texts, logprobs, strict=True) if value == best]
    if len({answers[text] for text in tied}) > 1:
        raise Unscoreable(f"tie of {' and '.join(map(repr, tied))}")
    return tied[0]


def _stated(case: Case, answers: Mapping[str, float]) -> str:
    found = list(re.finditer(case.parameters["pattern"], case.output))
    if not found:
        cut = ", which was cut at its most tokens" if case.response.output_truncated else ""
        raise Unscoreable(f"no verdict line in the reply{cut}")
    stated = found[-1].group(1) or ""
    by_form = {stated_form(answer): answer for answer in answers}
    if stated_form(stated) not in by_form:
        raise Unscoreable(f"verdict {stated.strip()[:80]!r} is no answer of the set")
    return by_form[stated_form(stated)]
