"""Exact match: a generated text against one or several reference answers."""

from __future__ import annotations

import re
import string
from typing import Any

from eval_tasks.scoring.references import references_of
from eval_tasks.scoring.registry import Case, Mark, MetricInfo, scorer

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_SPACES = re.compile(r"\s+")


@scorer(
    "exact_match",
    version="1",
    kinds=("generation",),
    metrics={"exact_match": MetricInfo()},
    parameters={"ignore_case": False, "ignore_punctuation": False, "strip": True, "collapse_spaces": False},
)
def exact_match(case: Case) -> list[Mark]:
    """1 when the output equals any reference answer, both put into the form that the parameters ask for."""
    given = _form(case.output, case.parameters)
    references = {_form(reference, case.parameters) for reference in references_of(case.item)}
    return [Mark(metric="exact_match", value=float(given in references), extracted=given)]


def _form(text: str, parameters: Any) -> str:
    if parameters["ignore_case"]:
        text = text.casefold()
    if parameters["ignore_punctuation"]:
        text = text.translate(_NO_PUNCTUATION)
    if parameters["collapse_spaces"]:
        text = _SPACES.sub(" ", text)
    return text.strip() if parameters["strip"] else text
