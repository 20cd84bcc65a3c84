"""Two processes of one checkpoint: the same rows as any other way; none outlives its leader or hides its end."""

from __future__ import annotations

import dataclasses
import gc
from typing import Any

import pytest

from eval_tasks.engine import Engine, load_engine, verify_engine
from eval_tasks.engine.sentinels import sentinel_requests
from eval_tasks.engine.verification import identities
from eval_tasks.errors import DataError, InfraError
from eval_tasks.records import EngineConfig, EngineTuning

TWO = EngineConfig(tensor_parallel=2)


def _follower(engine: Any) -> Any:
    (process,) = engine._leader._followers
    return process


def test_two_processes_have_the_rows_of_one_in_any_company(build, load) -> None:
    engine = load_engine(build("llama"), TWO)
    requests = sentinel_requests(259, 200)[::12]
    expected = identities(engine.respond(requests))
    other = engine.with_prefix("shared").tuned(EngineTuning(tokens_per_forward=9, decode_rows=4))
    assert identities(other.respond(requests[::-1])) == expected
    whole = identities(load("llama").respond(requests))
    for item_id, row in expected.items():
        assert row.logprobs == pytest.approx(whole[item_id].logprobs, abs=1e-3)
        assert row.output_ids == whole[item_id].output_ids
    follower = _follower(engine)
    del engine, other
    gc.collect()
    assert follower.returncode == 0


@pytest.mark.full
def test_a_rank_that_has_ended_is_named(build, ask) -> None:
    engine: Engine = load_engine(build("llama"), TWO)
    requests = [ask("choice", range(3, 20), continuations=((4,), (5,)))]
    engine.respond(requests)
    _follower(engine).kill()
    _follower(engine).wait()
    with pytest.raises(InfraError, match=r"rank 1 has ended|has lost another one"):
        engine.respond(requests)


def test_ranks_that_cannot_start_are_named_at_once(build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eval_tasks.engine.ranks.sys.executable", "false")
    with pytest.raises(InfraError, match="rank 1 has ended"):
        load_engine(build("llama"), TWO)


@pytest.mark.full
def test_rows_that_differ_between_ranks_are_never_given_out(build, ask) -> None:
    """A leader that asks for something else stands for a broken device."""
    engine: Any = load_engine(build("llama"), TWO)
    leader, honest = engine._leader, engine._leader.ask
    leader.ask = lambda number, requests: honest(
        number, [dataclasses.replace(r, continuations=r.continuations[::-1]) for r in requests]
    )
    with pytest.raises(DataError, match="different rows"):
        engine.respond([ask("choice", range(3, 20), continuations=((4,), (5,)))])


@pytest.mark.full
@pytest.mark.parametrize(
    ("family", "dtype"), [("gemma2", "float32"), ("llama", "bfloat16"), ("mistral", "float32"), ("qwen3", "float32")]
)
def test_every_promise_holds_for_two_processes(build, family: str, dtype: Any) -> None:
    checks = verify_engine(build(family), EngineConfig(tensor_parallel=2, dtype=dtype))
    assert [check.name for check in checks if not check.passed] == []
