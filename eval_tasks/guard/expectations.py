"""Clauses of the data contract -> Great Expectations' own count for each, offline. Imported only where it is used.

The import takes three seconds and some 260 MB. Nothing is written and nothing is sent: the context is an ephemeral one
in memory, and analytics are off before the package is imported.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from eval_tasks.errors import DataError

if TYPE_CHECKING:
    from eval_tasks.guard.contract import Clause, Part


def count(parts: Sequence[Part]) -> list[list[int]]:
    """For each part, what each of its clauses counts: rows, different values, or the values that break it.

    Raises DataError when an expectation could not be evaluated at all.
    """
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own imports are of modules that Python deprecates
        import great_expectations as gx

        context: Any = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = {"globally": False, "metric_calculations": False}
        source = context.data_sources.add_pandas("run")
        return [_counts(gx, source, f"{number}", part) for number, part in enumerate(parts)]


def _counts(gx: Any, source: Any, name: str, part: Part) -> list[int]:
    frame = pa.table(dict(part.columns)).to_pandas()
    batch = source.add_dataframe_asset(name).add_batch_definition_whole_dataframe("all").get_batch({"dataframe": frame})
    suite = gx.ExpectationSuite(
        name=name,
        expectations=[_expectation(gx.expectations, number, clause) for number, clause in enumerate(part.clauses)],
    )
    validated = batch.validate(suite, result_format={"result_format": "BASIC", "partial_unexpected_count": 0})
    by_number = {result.expectation_config.meta["clause"]: result for result in validated.results}
    return [_number(part, clause, by_number[number]) for number, clause in enumerate(part.clauses)]


def _expectation(expectations: Any, number: int, clause: Clause) -> Any:
    meta = {"clause": number}
    if clause.asks == "rows":
        low, high = (None if limit is None else int(limit) for limit in (clause.low, clause.high))
        return expectations.ExpectTableRowCountToBeBetween(min_value=low, max_value=high, meta=meta)
    if clause.asks == "unique":
        return expectations.ExpectColumnValuesToBeUnique(column=clause.column, meta=meta)
    between = {
        "range": expectations.ExpectColumnValuesToBeBetween,
        "kinds": expectations.ExpectColumnUniqueValueCountToBeBetween,
    }[clause.asks]
    return between(column=clause.column, min_value=clause.low, max_value=clause.high, meta=meta)


def _number(part: Part, clause: Clause, result: Any) -> int:
    found = result.result.get("observed_value", result.result.get("unexpected_count"))
    if found is None or result.success != clause.holds(int(found)):
        raise DataError(
            f"{part.benchmark or 'run'}, {part.name}: {clause.check} could not be validated: "
            f"{result.exception_info or result.result}"
        )
    return int(found)
