"""Two ways to take an answer out of one output, each matched exactly: lm-eval 0.4.9's pair of filter pipelines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eval_tasks.scoring.filtered_match import pipeline_mark
from eval_tasks.scoring.filters import MATCH_PARAMETERS, check_patterns, check_steps
from eval_tasks.scoring.registry import Case, Mark, MetricInfo, scorer


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Raise UserError for a step or a pattern that is none."""
    for name in ("strict_steps", "flexible_steps"):
        check_steps(name, parameters[name])
    check_patterns("regexes_to_ignore", parameters["regexes_to_ignore"])


@scorer(
    "strict_flexible",
    version="1",
    kinds=("generation",),
    metrics={"strict": MetricInfo(), "flexible": MetricInfo()},
    parameters={"strict_steps": [], "flexible_steps": [], **MATCH_PARAMETERS},
    check_parameters=check_parameters,
)
def strict_flexible(case: Case) -> list[Mark]:
    """strict and flexible: 1 when what that pipeline leaves equals any reference."""
    return [
        pipeline_mark(case, "strict", case.parameters["strict_steps"]),
        pipeline_mark(case, "flexible", case.parameters["flexible_steps"]),
    ]
