"""What makes two result rows the same."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest

from eval_tasks.records import Response, Score
from eval_tasks.store.identity import row_digest, rows_digest, score_digest
from tests.store.samples import response, sample, score

OTHER = {
    "benchmark_id": "x",
    "item_id": "x",
    "status": "invalid",
    "prompt_digest": "x",
    "reason": "x",
    "output": "x",
    "output_ids": (1,),
    "finish_reason": "eos",
    "logprobs": (-1.25, -0.25),
    "token_logprobs": ((-1.0, -0.25), (-0.25,)),
    "n_prompt_tokens": 8,
    "n_output_tokens": 1,
    "n_bytes": 3,
    "prompt_truncated": True,
    "output_truncated": True,
    "latency_ms": 9.0,
    "metric": "x",
    "value": 0.5,
    "weight": 2.0,
    "extracted": "x",
    "detail": "x",
    "stratum": "x",
    "cluster": "x",
    "samples": (sample(),),
    "greedy": (True, False),
    "sample_values": (1.0, 0.0),
}


@pytest.mark.parametrize("name", [field.name for field in fields(Response)])
def test_every_field_of_a_response_counts_but_its_latency(name: str) -> None:
    changed = replace(response("a"), **{name: OTHER[name]})
    assert (row_digest(changed) == row_digest(response("a"))) == (name == "latency_ms")


@pytest.mark.parametrize("name", [field.name for field in fields(Score)])
def test_every_field_of_a_score_counts(name: str) -> None:
    assert score_digest(replace(score("a"), **{name: OTHER[name]})) != score_digest(score("a"))


def test_the_digest_does_not_drift() -> None:
    assert row_digest(response("a")) == "117d90010641fff48370e628f601441328dd0fc7f1550889f49375099bba79f2"
    assert score_digest(score("a")) == "2075f7c3284c8607311eda7011ba1c4f98cb221025eef60f09fb4e18ae8ef60a"


def test_a_sign_of_zero_is_another_row_and_a_nan_is_itself() -> None:
    assert row_digest(response("a", logprobs=(0.0,))) != row_digest(response("a", logprobs=(-0.0,)))
    odd = math.copysign(math.nan, -1.0)
    assert row_digest(response("a", logprobs=(odd,))) == row_digest(response("a", logprobs=(math.nan,)))
    assert score_digest(score("a", value=math.nan)) == score_digest(score("a", value=None))


def test_nested_values_cannot_run_into_each_other() -> None:
    one = response("a", token_logprobs=((-1.0, -2.0), (-3.0,)))
    two = response("a", token_logprobs=((-1.0,), (-2.0, -3.0)))
    assert row_digest(one) != row_digest(two)
    assert row_digest(response("a", reason="xy", output="z")) != row_digest(response("a", reason="x", output="yz"))


def test_text_counts_as_it_is_stored() -> None:
    assert row_digest(response("a", output="\ud800")) == row_digest(response("a", output="\ufffd"))


@pytest.mark.parametrize(
    "change",
    [{"output": "y"}, {"output_ids": (5,)}, {"finish_reason": "length"}, {"token_logprobs": (-0.5, -1.5)}],
)
def test_every_field_of_a_sample_counts_and_so_does_their_order(change: dict) -> None:
    one, other = sample(), replace(sample(), **change)
    rows = {row_digest(response("a", samples=samples)) for samples in ((one, other), (other, one), (one, one), (one,))}
    assert len(rows) == 4


def test_order_counts_in_a_sequence_of_rows() -> None:
    assert rows_digest(["a", "b"]) != rows_digest(["b", "a"])


def test_a_number_or_text_of_another_class_counts_as_what_it_is() -> None:
    class Marked(str):
        __slots__ = ()

        def __str__(self) -> str:
            return "other"

    assert score_digest(score("a", reason=Marked("x"))) == score_digest(score("a", reason="x"))
    assert score_digest(score("a", value=np.float64(0.25))) == score_digest(score("a", value=0.25))
