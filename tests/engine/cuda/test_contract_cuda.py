"""The contract on a GPU, bit for bit, per family and dtype. Skipped where there is none."""

from __future__ import annotations

import random

import pytest

from eval_tasks.engine import load_engine
from eval_tasks.engine.engine import Engine
from eval_tasks.engine.sentinels import sentinel_requests
from eval_tasks.engine.verification import identities
from eval_tasks.records import EngineConfig, EngineTuning, Request, Response

VARIANTS = [(family, "float32") for family in ("gpt2", "llama", "mistral", "qwen2", "qwen3")]
VARIANTS += [(family, dtype) for family in ("gpt2", "llama", "qwen3") for dtype in ("bfloat16", "float16")]


@pytest.fixture(scope="module", params=VARIANTS, ids="-".join)
def engine(device, build, request: pytest.FixtureRequest) -> Engine:
    if device != "cuda":
        pytest.skip("no GPU: the contract was not tested on CUDA")
    family, dtype = request.param
    return load_engine(build(family), EngineConfig(device="cuda", dtype=dtype), EngineTuning(tokens_per_forward=500))


@pytest.fixture(scope="module")
def requests(engine: Engine) -> list[Request]:
    return sentinel_requests(engine.tokenizer.vocab_size, engine.context)


@pytest.fixture(scope="module")
def expected(engine: Engine, requests: list[Request]) -> dict[str, Response]:
    return identities(engine.respond(requests))


def _assert_equal(found: dict[str, Response], expected: dict[str, Response]) -> None:
    assert [item_id for item_id, response in found.items() if response != expected[item_id]] == []


def test_all_that_can_run_ran(expected) -> None:
    for item_id, response in expected.items():
        assert response.status == ("invalid" if item_id.startswith("invalid-") else "ok"), item_id


def test_alone_in_company_and_permuted(engine, requests, expected) -> None:
    for request in requests[::4]:
        _assert_equal(identities(engine.respond([request])), expected)
    _assert_equal(identities(engine.respond(random.Random(1).sample(requests, len(requests)))), expected)
    _assert_equal(identities(engine.respond(requests[::3])), expected)


@pytest.mark.parametrize(("tokens", "decode_rows"), [(7, 4), (64, 9), (4096, 64)])
@pytest.mark.parametrize("graph_mb", [0, 1024])
def test_tuning_is_no_input(engine, requests, expected, tokens: int, decode_rows: int, graph_mb: int) -> None:
    tuning = EngineTuning(tokens_per_forward=tokens, decode_rows=decode_rows, graph_mb=graph_mb)
    _assert_equal(identities(engine.tuned(tuning).respond(requests)), expected)


def test_decoding_was_recorded(engine, requests, expected) -> None:
    """Without this, graphs that never worked would pass for graphs that change nothing."""
    graphs = engine._body.graphs
    assert graphs.problem == ""
    assert graphs._recordings


def test_a_shared_prefix_is_no_input(engine, requests, expected) -> None:
    shared = engine.with_prefix("shared").tuned(EngineTuning(tokens_per_forward=300, prefix_cache_mb=1))
    _assert_equal(identities(shared.respond(requests)), expected)
    _assert_equal(identities(shared.respond(requests[-40:])), expected)
    assert shared.paths.n_reused_tokens > 0


def test_the_function_is_that_of_the_cpu(engine, build, requests, expected, request) -> None:
    """In float32 to rounding; below, only that it is no other function."""
    family, dtype = request.node.callspec.params["engine"]
    tolerance = {"float32": 1e-3, "bfloat16": 1.0, "float16": 0.25}[dtype]
    plain = identities(load_engine(build(family), EngineConfig()).respond(requests))
    for item_id, response in expected.items():
        if response.output_ids or response.status != "ok":
            continue
        for mine, other in zip(response.token_logprobs, plain[item_id].token_logprobs, strict=True):
            assert mine == pytest.approx(other, abs=tolerance), item_id
