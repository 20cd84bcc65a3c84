"""Exact match of what filters take out of an output: lm-eval 0.4.9's generate_until with one filter pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eval_tasks.scoring.filters import MATCH_PARAMETERS, check_patterns, check_steps, filtered, matches
from eval_tasks.scoring.references import references_of
from eval_tasks.scoring.registry import Case, Mark, MetricInfo, scorer


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Raise UserError for a step or a pattern that is none."""
    check_steps("steps", parameters["steps"])
    check_patterns("regexes_to_ignore", parameters["regexes_to_ignore"])


@scorer(
    "filtered_match",
    version="1",
    kinds=("generation",),
    metrics={"exact_match": MetricInfo()},
    parameters={"steps": [], **MATCH_PARAMETERS},
    check_parameters=check_parameters,
)
def filtered_match(case: Case) -> list[Mark]:
    """1 when the filtered output equals any reference."""
    return [pipeline_mark(case, "exact_match", case.parameters["steps"])]


def pipeline_mark(case: Case, metric: str, steps: list[Mapping[str, Any]]) -> Mark:
    """The exact match of one pipeline."""
    choices = case.item.fields.get("choices", ())
    known = choices if isinstance(choices, list | tuple) else ()
    given = filtered(case.output, steps, [str(choice) for choice in known])
    right = matches(given, references_of(case.item), case.parameters)
    return Mark(metric=metric, value=float(right), extracted=given)
