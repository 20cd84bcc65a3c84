"""Regular expressions as reference answers: a generated text against one or several patterns of its item.

The patterns are Python's. They come from the benchmark's data, which is pinned and reviewed; one that backtracks
without end on some output would hold up grading, so keep them plain.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from eval_tasks.errors import UserError
from eval_tasks.records import Item
from eval_tasks.scoring.references import references_of
from eval_tasks.scoring.registry import Case, Mark, MetricInfo, scorer


def check_items(items: Sequence[Item]) -> None:
    """Raise UserError naming the item whose pattern is none, DataError for one without a pattern."""
    for item in items:
        for pattern in references_of(item):
            try:
                re.compile(pattern)
            except re.error as error:
                raise UserError(
                    f"item {item.item_id!r}: {pattern!r} is no regular expression: {error}; escape what is meant "
                    "literally with a backslash"
                ) from error


@scorer(
    "regex",
    version="1",
    kinds=("generation",),
    metrics={"regex_match": MetricInfo()},
    parameters={"whole": False, "ignore_case": False, "strip": True},
    check_items=check_items,
)
def regex(case: Case) -> list[Mark]:
    """1 when a pattern is found in the output, or with `whole` matches all of it; `extracted` is what it matched."""
    text = case.output.strip() if case.parameters["strip"] else case.output
    flags = re.IGNORECASE if case.parameters["ignore_case"] else re.NOFLAG
    for pattern in references_of(case.item):
        compiled = re.compile(pattern, flags)
        found = compiled.fullmatch(text) if case.parameters["whole"] else compiled.search(text)
        if found:
            return [Mark(metric="regex_match", value=1.0, extracted=found.group())]
    return [Mark(metric="regex_match", value=0.0)]
