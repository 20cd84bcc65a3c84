"""Range and shape checks, each at its limit."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from eval_tasks.guard.contract import Breach
from eval_tasks.guard.plausibility import MIN_ITEMS_FOR_SHAPE, check_measurement, check_shape, shape_columns
from eval_tasks.records import Measurement, ReasoningBlock, Sampling, ScorerRef
from eval_tasks.store.response_rows import table_of
from tests.store.samples import benchmark, response, sample

N = MIN_ITEMS_FOR_SHAPE


def measurement(**changes: Any) -> Measurement:
    fields: dict[str, Any] = {
        "run_id": "r",
        "benchmark_id": "b",
        "benchmark": "colours",
        "version": "1",
        "metric": "acc",
        "primary": True,
        "score": 0.5,
        "n": 100,
        "n_attempted": 100,
        "se": 0.05,
        "ci95": (0.4, 0.6),
        "ci95_method": "Wilson",
    }
    return Measurement(**{**fields, **changes})


def broken(**changes: Any) -> list[str]:
    return [breach.check for breach in check_measurement(measurement(**changes), benchmark())]


@pytest.mark.parametrize(
    ("score", "sound"),
    [(0.2, True), (math.nextafter(0.2, 0), False), (0.9, True), (math.nextafter(0.9, 1), False), (None, True)],
)
def test_the_plausible_range_is_inclusive(score: float | None, sound: bool) -> None:
    assert broken(score=score) == ([] if sound else ["plausible_range"])


def test_a_metric_without_a_declared_range_has_none() -> None:
    assert broken(metric="acc_norm", score=0.0) == []


def test_no_invalid_item_is_tolerated_and_it_is_said_once_for_the_benchmark() -> None:
    assert broken(n_invalid=0) == []
    assert broken(n_invalid=1) == ["invalid_share"]
    assert broken(n_invalid=1, primary=False) == []


def test_a_loss_all_of_whose_items_are_invalid_is_found_though_none_was_scored() -> None:
    assert broken(n=0, score=None, n_invalid=100) == ["invalid_share"]


def shape(
    n: int = N, *, kind: str = "choice", same: int = 0, tied: int = 0, empty: int = 0, cut: int = 0, status: str = "ok"
) -> list[str]:
    """Checks broken by `n` rows, of which so many are alike, tied, empty or cut."""
    responses = pa.table(
        {
            "status": [status] * n,
            "output": [" \n" if k < empty else "text" for k in range(n)],
            "logprobs": pa.array([[-1.0, -1.0] if k < tied else [-1.0, -2.0] for k in range(n)]),
            "output_truncated": [k < cut for k in range(n)],
        }
    )
    extracted = ["A" if k < same else "B" for k in range(n)]
    pieces = [responses.slice(0, 7), responses.slice(7)]
    return [breach.check for breach in check_shape(pieces, answers(*extracted), benchmark(kind=kind))]


def answers(*extracted: str) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(extracted, pa.string())])


def test_one_letter_for_every_item_is_an_excursion_and_one_other_letter_is_not() -> None:
    assert shape(same=N) == ["constant_prediction"]
    assert shape(same=0) == ["constant_prediction"]
    assert shape(same=N - 1) == []


def test_all_ties_are_an_excursion_and_one_item_that_differs_is_not() -> None:
    assert shape(same=1, tied=N) == ["all_ties"]
    assert shape(same=1, tied=N - 1) == []


@pytest.mark.parametrize(("name", "check"), [("empty", "empty_share"), ("cut", "truncated_share")])
def test_half_of_the_outputs_may_be_empty_or_cut(name: str, check: str) -> None:
    assert shape(kind="generation", **{name: N // 2}) == []
    assert shape(kind="generation", **{name: N // 2 + 1}) == [check]


@pytest.mark.parametrize(("name", "check"), [("empty", "empty_share"), ("cut", "truncated_share")])
def test_every_sample_of_a_sampled_item_is_an_output(name: str, check: str) -> None:
    """Two samples per item: half of all outputs is the first sample of every item."""

    def broken_by(n: int) -> list[str]:
        bad = sample(output=" ") if name == "empty" else sample(finish_reason="length")
        rows = [response(f"{k}", samples=(bad if k < n else sample(), bad)) for k in range(N)]
        responses = table_of(rows, [""] * N, shard=0, batch=0)
        drawn = benchmark(kind="generation", sampling=Sampling(temperature=1.0, samples=2, reason="test"))
        return [breach.check for breach in check_shape([responses], answers(), drawn)]

    assert broken_by(0) == []
    assert broken_by(1) == [check]


def test_shapes_that_belong_to_another_kind_are_not_looked_at() -> None:
    assert shape(kind="generation", same=N, tied=N) == []
    assert shape(kind="choice", same=1, empty=N, cut=N) == []


def test_a_few_items_may_well_be_alike_by_chance() -> None:
    assert shape(N - 1, same=N - 1, tied=N - 1) == []


def test_only_rows_that_were_answered_count() -> None:
    assert shape(same=N, tied=N, status="invalid") == []


def test_items_without_a_choice_to_make_are_not_ties() -> None:
    responses = pa.table({"status": ["ok"] * N, "logprobs": pa.array([[-1.0]] * N)})
    assert check_shape([responses], answers(*["A", "B"] * (N // 2)), benchmark()) == []


def reasoned(*outputs: str) -> list[Breach]:
    block = ReasoningBlock(name="think", start="<think>", end="</think>")
    scorer = ScorerRef(name="exact_match", version="1", reasoning=block)
    responses = pa.table({"status": ["ok"] * N, "output": list(outputs), "output_truncated": [False] * N})
    return check_shape([responses], answers(), benchmark(kind="generation", scorer=scorer))


def test_an_output_of_reasoning_alone_is_empty_to_the_scorer() -> None:
    alone, answered = "<think>much thought</think> \n", "<think>much thought</think> 4"
    (breach,) = reasoned(*[alone] * (N // 2 + 1), *[answered] * (N // 2 - 1))
    assert (breach.check, breach.observed) == ("empty_share", "55% empty, 55% with reasoning and no answer")
    (breach,) = reasoned(*["<think>never closed"] * N)
    assert breach.observed == "100% empty, 100% with reasoning and no answer"
    assert reasoned(*[alone] * (N // 2), *[answered] * (N // 2)) == []
    (breach,) = reasoned(*[""] * N)
    assert breach.observed == "100% empty"


def test_the_columns_that_are_read_are_those_of_the_kind() -> None:
    assert shape_columns(benchmark(kind="loss")) == []
    assert "output" not in shape_columns(benchmark(kind="choice"))
    assert "output" in shape_columns(benchmark(kind="generation"))
