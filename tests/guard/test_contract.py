"""The data contract, clause by clause, by both of its validators: they must say the same."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eval_tasks.guard.contract import BUILT_IN, Breach, rows_part, scores_part, shards_part, validate

VALIDATORS = ("built_in", "great_expectations")


def rows(*changes: dict[str, Any]) -> pa.Table:
    """One responses row per mapping, sound but for what it says."""
    whole = [{"item_id": f"i{n}", "status": "ok", "reason": "", "logprobs": [-1.0]} | c for n, c in enumerate(changes)]
    schema = pa.schema(
        {"item_id": pa.string(), "status": pa.string(), "reason": pa.string(), "logprobs": pa.list_(pa.float64())}
    )
    return pa.Table.from_pylist(whole, schema=schema)


def scores(*values: float | None, metric: str = "acc") -> pa.Table:
    schema = pa.schema({"item_id": pa.string(), "metric": pa.string(), "value": pa.float64()})
    return pa.Table.from_pylist(
        [{"item_id": f"i{n}", "metric": metric, "value": v} for n, v in enumerate(values)], schema=schema
    )


def breaches(part: Any) -> list[Breach]:
    """What is broken, once both validators were heard."""
    ours, theirs = (validate([part], by) for by in VALIDATORS)  # type: ignore[arg-type]
    assert ours.by == BUILT_IN and theirs.by.startswith("great_expectations 1.")
    assert ours.results == theirs.results
    assert [r.check for r in ours.results] == [c.check for c in part.clauses]
    return [Breach(check=r.check, observed=r.observed, expected=r.expected) for r in ours.results if not r.passed]


def check_rows(*arguments: Any, **keywords: Any) -> list[Breach]:
    return breaches(rows_part("colours", *arguments, **keywords))


def check_scores(table: pa.Table, **keywords: Any) -> list[Breach]:
    return breaches(scores_part("colours", table, **keywords))


def broken(*arguments: Any, **keywords: Any) -> list[str]:
    return [breach.check for breach in check_rows(*arguments, **keywords)]


def test_sound_rows_break_nothing() -> None:
    invalid = {"status": "invalid", "reason": "non-finite logits", "logprobs": []}
    assert check_rows(rows({}, {}, invalid), 3) == []


@pytest.mark.parametrize("n_planned", [2, 4])
def test_the_count_is_that_of_the_plan(n_planned: int) -> None:
    (breach,) = check_rows(rows({}, {}, {}), n_planned)
    assert (breach.check, breach.observed, breach.expected) == ("row_count", "3 rows", f"{n_planned} rows")


def test_an_empty_table_passes_nothing() -> None:
    assert broken(rows(), 3) == ["row_count"]
    assert broken(rows(), 3, n_missing=3) == ["row_count"]
    assert broken(rows(), 0) == []


def test_missing_items_explain_absent_rows_and_no_more_than_those() -> None:
    assert broken(rows({}, {}), 3, n_missing=1) == []
    assert broken(rows({}, {}), 3, n_missing=2) == ["row_count"]
    assert broken(rows({}, {}), 2, n_missing=1) == ["row_count"]


def test_ids_are_unique() -> None:
    (breach,) = check_rows(rows({}, {"item_id": "i0"}), 2)
    assert (breach.check, breach.observed) == ("unique_ids", "2 of 2 rows share their id")


def test_every_status_but_ok_has_a_reason() -> None:
    assert broken(rows({"status": "invalid"}, {"status": "ok", "reason": ""}), 2) == ["status_explained"]


@pytest.mark.parametrize("value", [math.nan, None, -math.inf, math.inf])
def test_logprobs_are_finite(value: float | None) -> None:
    (breach,) = check_rows(rows({"logprobs": [-1.0, value]}, {}), 2)
    assert (breach.check, breach.observed) == ("finite_logprobs", "1 of 2 rows with one that is not")


def test_each_item_has_one_score_of_each_metric() -> None:
    table = pa.concat_tables([scores(1.0, 0.0, 1.0), scores(1.0, 0.0, metric="acc_norm")])
    assert check_scores(table, metric="acc", unit="fraction", n_planned=3) == []
    (breach,) = check_scores(table, metric="acc_norm", unit="fraction", n_planned=3)
    assert (breach.check, breach.observed) == ("one_grader_row_per_item", "2 acc_norm rows")
    assert [b.check for b in check_scores(table, metric="other", unit="fraction", n_planned=3)] == [
        "one_grader_row_per_item"
    ]


@pytest.mark.parametrize(
    ("values", "sound"),
    [
        ((0.0, 1.0), True),
        ((0.5, math.nan), False),
        ((0.0, math.nextafter(1.0, 2.0)), False),
        ((-5e-324, 1.0), False),
        ((None, None), True),
    ],
)
def test_fractions_lie_in_zero_to_one_inclusive(values: tuple[float | None, ...], sound: bool) -> None:
    found = check_scores(scores(*values), metric="acc", unit="fraction", n_planned=2)
    assert [breach.check for breach in found] == ([] if sound else ["score_range"])


def test_a_loss_has_no_range_of_its_own() -> None:
    assert check_scores(scores(0.0, 7.5, metric="bits"), metric="bits", unit="bits per byte", n_planned=2) == []


def test_count_comes_first() -> None:
    assert rows_part("colours", rows({}), 1).clauses[0].check == "row_count"
    assert scores_part("colours", scores(1.0), metric="acc", unit="fraction", n_planned=1).clauses[0].check == (
        "one_grader_row_per_item"
    )


def test_a_run_has_one_environment() -> None:
    assert breaches(shards_part([])) == breaches(shards_part(["a" * 32, "a" * 32])) == []
    (breach,) = breaches(shards_part(["b" * 32, "a" * 32, "b" * 32]))
    assert (breach.check, breach.observed) == ("one_environment", f"2 ({'a' * 12}, {'b' * 12})")


ROW = st.fixed_dictionaries(
    {
        "item_id": st.sampled_from(["a", "b", "c", "d", "e"]),
        "status": st.sampled_from(["ok", "invalid"]),
        "reason": st.sampled_from(["", "why"]),
        "logprobs": st.lists(st.sampled_from([-1.0, None, math.inf, math.nan]), max_size=2),
    }
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(table=st.lists(ROW, max_size=6), n_planned=st.integers(0, 7), values=st.lists(st.floats(), max_size=4))
def test_both_validators_say_the_same_of_anything(
    table: list[dict[str, Any]], n_planned: int, values: list[float]
) -> None:
    check_rows(rows(*table), n_planned, n_missing=min(1, n_planned))
    check_scores(scores(*values), metric="acc", unit="fraction", n_planned=n_planned)


def test_without_great_expectations_the_contract_is_still_checked_and_says_by_what() -> None:
    """As the light install: no package metadata, no module."""
    script = """
import importlib.metadata, sys
def absent(name): raise importlib.metadata.PackageNotFoundError(name)
from eval_tasks.guard import contract
contract.version = absent
sys.modules["great_expectations"] = None
print(contract.validate([contract.shards_part(["a", "b"])]).by)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == BUILT_IN


def test_validating_writes_nothing_and_calls_nobody(tmp_path: Path) -> None:
    """No home folder of the package, no socket: a process whose sockets raise validates all the same."""
    script = """
import socket
class Closed(socket.socket):
    def connect(self, address): raise AssertionError(f"connects to {address}")
socket.socket = Closed
from eval_tasks.guard import contract
print(contract.validate([contract.shards_part(["a"])], "great_expectations").by)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[2],
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("great_expectations ")
    assert not (tmp_path / ".great_expectations").exists()
