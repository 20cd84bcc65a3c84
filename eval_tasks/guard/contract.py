"""The data contract of one benchmark's rows in one run: count first, since an empty table passes every other check.

Goes in: the rows' columns as Arrow tables. Comes out: (check, observed, expected) for each broken clause.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

CHECKS = ("row_count", "unique_ids", "status_explained", "finite_logprobs", "score_range", "one_grader_row_per_item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """One broken clause, in words."""

    check: str
    observed: str
    expected: str


def check_rows(responses: pa.Table, n_planned: int, n_missing: int = 0) -> list[Breach]:
    """Breaches of a responses table with columns item_id, status, reason, logprobs.

    `n_missing` planned items are known to be lost; that explains some absent rows, never all of them.
    """
    breaches = []
    if responses.num_rows != n_planned - n_missing or (n_planned and not responses.num_rows):
        expected = f"{n_planned} rows" + (f", {n_missing} of them missing" if n_missing else "")
        breaches.append(Breach(check="row_count", observed=f"{responses.num_rows} rows", expected=expected))
    n_distinct = pc.count_distinct(responses["item_id"]).as_py() if responses.num_rows else 0
    if n_distinct != responses.num_rows:
        breaches.append(
            Breach(
                check="unique_ids", observed=f"{n_distinct} distinct of {responses.num_rows}", expected="all distinct"
            )
        )
    unexplained = pc.and_(pc.not_equal(responses["status"], "ok"), pc.equal(responses["reason"], ""))
    if n_unexplained := pc.sum(unexplained).as_py():
        breaches.append(
            Breach(check="status_explained", observed=f"{n_unexplained} rows without", expected="a reason unless ok")
        )
    values = pc.list_flatten(responses["logprobs"])
    n_bad = len(values) - (pc.sum(pc.is_finite(values)).as_py() or 0)
    if n_bad:
        breaches.append(Breach(check="finite_logprobs", observed=f"{n_bad} not finite", expected="all finite"))
    return breaches


def check_scores(scores: pa.Table, *, metric: str, unit: str, n_planned: int) -> list[Breach]:
    """Breaches of one metric's scores with columns item_id, metric, value."""
    table = scores.filter(pc.equal(scores["metric"], metric))
    breaches = []
    if table.num_rows != n_planned:
        breaches.append(
            Breach(
                check="one_grader_row_per_item",
                observed=f"{table.num_rows} {metric} rows",
                expected=f"{n_planned} rows",
            )
        )
    values = table["value"].drop_null()
    if unit == "fraction" and len(values):
        low, high = pc.min(values).as_py(), pc.max(values).as_py()
        if low < 0 or high > 1:
            breaches.append(Breach(check="score_range", observed=f"{low} to {high}", expected="0 to 1"))
    return breaches
