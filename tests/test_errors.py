"""Errors by who must act, and the tail of a message that shows the way out."""

from __future__ import annotations

import pytest

from eval_tasks import errors
from eval_tasks.errors import CheckpointError, did_you_mean


@pytest.mark.parametrize(
    ("kind", "parent"),
    [
        ("NotComparableError", "UserError"),
        ("CheckpointError", "UserError"),
        ("DriftError", "DataError"),
        ("UnknownError", "UserError"),
        ("BudgetError", "UserError"),
    ],
)
def test_a_narrower_error_is_handled_as_its_parent(kind: str, parent: str) -> None:
    assert issubclass(getattr(errors, kind), getattr(errors, parent))


def test_only_infrastructure_is_worth_another_try() -> None:
    kinds = [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, errors.EvalError)]
    retried = {k.__name__ for k in kinds if issubclass(k, errors.InfraError)}
    assert retried == {"InfraError"}
    assert len(kinds) == 11


def test_a_checkpoint_error_keeps_its_named_reason() -> None:
    error = CheckpointError("missing_shard", "model-00002 is not there")
    assert (error.reason, str(error)) == ("missing_shard", "model-00002 is not there")


def test_close_names_come_first_and_at_most_three() -> None:
    known = ["mmlu", "mmlu-pro", "mmlu-redux", "mmlu-lite", "gsm8k"]
    assert did_you_mean("mmlu-por", known).startswith("close: 'mmlu-pro'")
    assert did_you_mean("mmlu-por", known).count("'") == 6


def test_without_a_close_name_the_known_ones_are_listed_up_to_ten() -> None:
    assert did_you_mean("x", ["beta", "alpha", "beta"]) == "known: alpha, beta"
    assert did_you_mean("x", (f"name-{n:02d}" for n in range(12))).endswith("name-09 and 2 more")
    assert did_you_mean("x", []) == "none are known"
