"""verify_engine: every check passes on a sound engine, and a broken one is found."""

from __future__ import annotations

import pytest

from eval_tasks.engine import attention, linears, verify_engine
from eval_tasks.engine.sentinels import LENGTHS, PLAIN_MODEL, sentinel_requests
from eval_tasks.records import EngineConfig

CHECKS = [
    "again",
    "backwards",
    "alone",
    "every third",
    "few tokens per forward",
    "many tokens per forward",
    "shared prefix, cache empty",
    "shared prefix, cache warm",
    "2 threads",
    PLAIN_MODEL,
]


def test_the_sentinels_have_all_shapes_and_are_the_same_again() -> None:
    requests = sentinel_requests(259, 200)
    assert requests == sentinel_requests(259, 200)
    assert {(r.kind, len(r.prompt_ids)) for r in requests} >= {
        *(("choice", n) for n in (*LENGTHS, 199)),
        *(("generation", n) for n in (*LENGTHS, 199)),
    }
    assert {len(r.continuations[0]) + 1 for r in requests if r.kind == "loss"} == {*LENGTHS[1:], 199}
    assert len({r.item_id for r in requests}) == len(requests) == 99
    assert max(len(r.prompt_ids) for r in sentinel_requests(259, 40)) == 39


def test_a_sound_engine_passes_every_check(build) -> None:
    checks = verify_engine(build("llama"), EngineConfig(max_context=40))
    assert [check.name for check in checks] == CHECKS
    assert all(check.passed and not check.differing for check in checks)


def test_a_multiplication_that_depends_on_its_rows_is_found(build, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = linears.multiply_by

    def inexact(weight, bias):
        multiply = exact(weight, bias)
        return lambda x: multiply(x) * (1 + 1e-6 * (x.numel() // x.shape[-1] > 256))

    monkeypatch.setattr(linears, "multiply_by", inexact)
    checks = {check.name: check for check in verify_engine(build("llama"), EngineConfig(max_context=40))}
    assert not checks["alone"].passed
    assert checks["alone"].differing
    assert checks["again"].passed
    assert checks[PLAIN_MODEL].passed


def test_another_function_is_found(build, monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeatable and wrong: attention with another scale."""
    exact = attention.Form
    monkeypatch.setattr(attention, "Form", lambda scale, *rest: exact(scale * 1.1, *rest))
    checks = {check.name: check for check in verify_engine(build("llama"), EngineConfig(max_context=40))}
    assert checks["alone"].passed
    assert not checks[PLAIN_MODEL].passed
