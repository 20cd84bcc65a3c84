"""The data contract of a run's rows: clauses in code, in the order of checking; count first.

Goes in: columns of the rows as Arrow tables. Comes out: one result per clause. Great Expectations validates where it is
installed (`eval_tasks.guard.expectations`), Arrow's own functions where it is not; both read these clauses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from eval_tasks.records import ContractReport, ContractResult

# In the order of checking: an empty table passes every other check.
CHECKS = (
    "row_count",
    "one_grader_row_per_item",
    "unique_ids",
    "score_range",
    "status_explained",
    "finite_logprobs",
    "one_environment",
)

Validator = Literal["auto", "great_expectations", "built_in"]
BUILT_IN = "built-in checks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """One broken check, in words."""

    check: str
    observed: str
    expected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """What must hold of a part: ``rows`` (their number), ``unique`` values, ``range`` of values, ``kinds`` of values.

    `low` and `high` are inclusive; None is no limit. `observed` is said of a clause, with {n} for what was counted
    (rows, kinds, or values that break it) and {rows} for the rows of the part.
    """

    check: str
    asks: Literal["rows", "unique", "range", "kinds"]
    column: str = ""
    low: float | None = None
    high: float | None = None
    observed: str
    expected: str

    def holds(self, n: int) -> bool:
        """Whether `n`, counted as `asks` says, keeps the clause."""
        if self.asks in ("rows", "kinds"):
            return (self.low is None or n >= self.low) and (self.high is None or n <= self.high)
        return n == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Rows that some clauses are about. `metric`: whose number they are; '' for those of the whole benchmark."""

    benchmark: str
    name: str
    metric: str = ""
    columns: Mapping[str, Any]
    n_rows: int
    clauses: tuple[Clause, ...]


def rows_part(benchmark: str, responses: pa.Table, n_planned: int, n_missing: int = 0) -> Part:
    """The responses of a benchmark: a table with columns item_id, status, reason, logprobs.

    `n_missing` planned items are known to be lost; that explains some absent rows, never all of them.
    """
    n_expected = n_planned - n_missing
    at_least = min(1, n_planned)
    counted = Clause(
        check="row_count",
        asks="rows",
        low=max(n_expected, at_least),
        high=max(n_expected, at_least),
        observed="{n} rows",
        expected=f"{n_planned} rows" + (f", {n_missing} of them missing" if n_missing else ""),
    )
    unexplained = pc.and_(pc.not_equal(responses["status"], "ok"), pc.equal(responses["reason"], ""))
    return Part(
        benchmark=benchmark,
        name="rows",
        columns={
            "item_id": responses["item_id"],
            "unexplained": pc.cast(unexplained, pa.int8()),
            "not_finite": _rows_not_finite(responses["logprobs"]),
        },
        n_rows=responses.num_rows,
        clauses=(
            counted,
            Clause(
                check="unique_ids",
                asks="unique",
                column="item_id",
                observed="{n} of {rows} rows share their id",
                expected="all distinct",
            ),
            Clause(
                check="status_explained",
                asks="range",
                column="unexplained",
                low=0,
                high=0,
                observed="{n} of {rows} rows without",
                expected="a reason unless ok",
            ),
            Clause(
                check="finite_logprobs",
                asks="range",
                column="not_finite",
                low=0,
                high=0,
                observed="{n} of {rows} rows with one that is not",
                expected="all finite",
            ),
        ),
    )


def scores_part(benchmark: str, scores: pa.Table, *, metric: str, unit: str, n_planned: int) -> Part:
    """The scores of one metric: a table with columns metric, value."""
    values = scores["value"].filter(pc.equal(scores["metric"], metric))
    # NaN is not in any range; pandas would take it for a value that is not there.
    values = pc.if_else(pc.is_nan(values), float("inf"), values)
    counted = Clause(
        check="one_grader_row_per_item",
        asks="rows",
        low=n_planned,
        high=n_planned,
        observed=f"{{n}} {metric} rows",
        expected=f"{n_planned} rows",
    )
    in_range = Clause(
        check="score_range",
        asks="range",
        column="value",
        low=0.0,
        high=1.0,
        observed="{n} of {rows} scores outside",
        expected="0 to 1",
    )
    return Part(
        benchmark=benchmark,
        name=f"scores of {metric}",
        metric=metric,
        columns={"value": values},
        n_rows=len(values),
        clauses=(counted, in_range) if unit == "fraction" else (counted,),
    )


def shards_part(fingerprints: Sequence[str]) -> Part:
    """The environments that the shards of a run report: with a second one none of its numbers has a fingerprint."""
    names = ", ".join(fingerprint[:12] for fingerprint in sorted(set(fingerprints)))
    clause = Clause(
        check="one_environment",
        asks="kinds",
        column="env_fingerprint",
        high=1,
        observed=f"{{n}} ({names})" if names else "{n}",
        expected="one for all shards",
    )
    return Part(
        benchmark="",
        name="shards",
        columns={"env_fingerprint": pa.chunked_array([pa.array(list(fingerprints), pa.string())])},
        n_rows=len(fingerprints),
        clauses=(clause,),
    )


def validate(parts: Sequence[Part], validator: Validator = "auto") -> ContractReport:
    """One result per clause of each part, in their order.

    ``auto`` is Great Expectations where it is installed; importing it takes some seconds, once in a process.
    """
    if validator == "great_expectations" or (validator == "auto" and _great_expectations()):
        from eval_tasks.guard.expectations import count

        by, counted = f"great_expectations {_great_expectations()}", count(parts)
    else:
        by, counted = BUILT_IN, [[_count(part, clause) for clause in part.clauses] for part in parts]
    results = [
        ContractResult(
            benchmark=part.benchmark,
            part=part.name,
            check=clause.check,
            expectation=_expectation(clause),
            passed=clause.holds(n),
            observed=clause.observed.format(n=n, rows=part.n_rows),
            expected=clause.expected,
        )
        for part, numbers in zip(parts, counted, strict=True)
        for clause, n in zip(part.clauses, numbers, strict=True)
    ]
    return ContractReport(by=by, results=tuple(results))


def _great_expectations() -> str:
    """Its version, '' where it is not installed."""
    try:
        return version("great-expectations")
    except PackageNotFoundError:
        return ""


def _expectation(clause: Clause) -> str:
    """The clause as Great Expectations names it."""
    names = {
        "rows": "expect_table_row_count_to_be_between",
        "unique": "expect_column_values_to_be_unique",
        "range": "expect_column_values_to_be_between",
        "kinds": "expect_column_unique_value_count_to_be_between",
    }
    limits = [f"{name}={value:g}" for name, value in (("min", clause.low), ("max", clause.high)) if value is not None]
    return f"{names[clause.asks]}({', '.join(filter(None, [clause.column, *limits]))})"


def _count(part: Part, clause: Clause) -> int:
    """What a clause counts, by Arrow: rows, different values, or the values that break it (nulls never do)."""
    if clause.asks == "rows":
        return part.n_rows
    values = part.columns[clause.column]
    if not len(values):
        return 0
    if clause.asks == "kinds":
        return int(pc.count_distinct(values).as_py())
    if clause.asks == "unique":
        counts = pc.struct_field(pc.value_counts(values), "counts")
        return int(pc.sum(counts.filter(pc.greater(counts, 1))).as_py() or 0)
    outside = pc.or_(pc.less(values, clause.low), pc.greater(values, clause.high))
    return int(pc.sum(outside).as_py() or 0)


def _rows_not_finite(logprobs: pa.ChunkedArray) -> pa.ChunkedArray:
    """1 for each row with a logprob that is not finite, 0 for the others."""
    chunks = []
    for chunk in logprobs.chunks:
        bad = pc.invert(pc.fill_null(pc.is_finite(pc.list_flatten(chunk)), False))  # a NaN is stored as null
        rows = pc.list_parent_indices(chunk).filter(bad)
        chunks.append(pc.cast(pc.is_in(pa.array(range(len(chunk)), pa.int64()), value_set=rows), pa.int8()))
    return pa.chunked_array(chunks, pa.int8())
