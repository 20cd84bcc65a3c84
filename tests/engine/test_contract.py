"""The contract, bit for bit, per family and dtype: a response is a function of its request alone."""

from __future__ import annotations

import random
from typing import Any

import pytest

from eval_tasks.engine.engine import Engine
from eval_tasks.engine.sentinels import sentinel_requests
from eval_tasks.engine.verification import identities
from eval_tasks.records import EngineTuning, Request, Response
from tests.engine.conftest import FAMILIES

# On these every other sentinel is asked; on the others some here, and all in the full tests.
CORE = ("gemma2", "gpt2", "llama", "qwen3_moe")
OTHERS: list[tuple[str, str, dict[str, Any]]] = [
    *((family, "float32", {}) for family in FAMILIES if family not in CORE),
    *((family, "bfloat16", {}) for family in ("gemma2", "gpt2")),
    ("mistral", "float32", {"sliding_window": 5}),
]
MORE: list[tuple[str, str, dict[str, Any]]] = [
    *((family, "bfloat16", {}) for family in ("llama", "qwen3_moe")),
    *(("mistral", "float32", {"sliding_window": window}) for window in (32, 70)),
    ("qwen2", "float32", {"sliding_window": 33, "use_sliding_window": True, "max_window_layers": 1}),
]
VARIANTS = [
    *((family, "float32", {}, 2) for family in CORE),
    *((*variant, 7) for variant in OTHERS),
    *(pytest.param((*variant, 1), marks=pytest.mark.full) for variant in (*OTHERS, *MORE)),
]


@pytest.fixture(scope="module", params=VARIANTS, ids=lambda variant: "-".join(map(str, variant)))
def variant(request: pytest.FixtureRequest) -> tuple[str, str, dict[str, Any], int]:
    """Family, dtype, changes of its configuration, and every how many sentinels one is asked."""
    return request.param


@pytest.fixture(scope="module")
def engine(load, variant) -> Engine:
    family, dtype, changes, _ = variant
    return load(family, dtype, **changes)


@pytest.fixture(scope="module")
def requests(engine: Engine, variant) -> list[Request]:
    return sentinel_requests(engine.tokenizer.vocab_size, engine.context)[:: variant[-1]]


@pytest.fixture(scope="module")
def expected(engine: Engine, requests: list[Request]) -> dict[str, Response]:
    """Every request, in one call."""
    responses = identities(engine.respond(requests))
    assert all((r.status == "ok") != r.item_id.startswith("invalid-") for r in responses.values())
    return responses


def _shuffled(requests: list[Request], seed: int) -> list[Request]:
    return random.Random(seed).sample(requests, len(requests))


def _assert_equal(found: dict[str, Response], expected: dict[str, Response]) -> None:
    differing = [item_id for item_id, response in found.items() if response != expected[item_id]]
    assert differing == []


def test_an_item_alone_is_the_same_as_in_company(engine, requests, expected) -> None:
    alone = {}
    for request in requests[::4]:
        alone.update(identities(engine.respond([request])))
    _assert_equal(alone, expected)


def test_order_is_no_input(engine, requests, expected) -> None:
    found = identities(engine.respond(_shuffled(requests, 1)))
    assert found.keys() == expected.keys()
    _assert_equal(found, expected)


def test_companions_are_no_input(engine, requests, expected) -> None:
    for batch in (_shuffled(requests, 2)[:32], requests[::3]):
        _assert_equal(identities(engine.respond(batch)), expected)


@pytest.mark.parametrize(("tokens", "decode_rows"), [(7, 4), (64, 9), (4096, 64)])
def test_tuning_is_no_input(engine, requests, expected, tokens: int, decode_rows: int) -> None:
    tuned = engine.tuned(EngineTuning(tokens_per_forward=tokens, decode_rows=decode_rows))
    _assert_equal(identities(tuned.respond(requests)), expected)


def test_one_and_two_threads_agree(engine, requests, expected) -> None:
    try:
        _assert_equal(identities(engine.with_threads(2).respond(requests[::9])), expected)
    finally:
        engine.respond(requests[:1])


def test_a_shared_prefix_is_no_input(engine, requests, expected) -> None:
    """A cache of 1 MiB holds a few tiles, so that they come and go."""
    shared = engine.with_prefix("shared").tuned(EngineTuning(tokens_per_forward=4, prefix_cache_mb=1))
    cold = identities(shared.respond(_shuffled(requests, 3)))
    warm = identities(shared.respond(requests[-40:]))
    _assert_equal(cold, expected)
    _assert_equal(warm, expected)
    assert shared.paths.n_reused_tokens > 0


@pytest.mark.golden
@pytest.mark.parametrize("name", ["stories260K-hf", "babyllama105-hf"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_trained_models_keep_the_contract(golden, name: str, dtype: str) -> None:
    from eval_tasks.engine import load_engine
    from eval_tasks.records import EngineConfig

    engine = load_engine(golden / "models" / name, EngineConfig(dtype=dtype))
    requests = sentinel_requests(engine.tokenizer.vocab_size, min(engine.context, 200))
    expected = identities(engine.respond(requests))
    _assert_equal(
        identities(engine.tuned(EngineTuning(tokens_per_forward=3)).respond(_shuffled(requests, 4))), expected
    )
    _assert_equal(identities(engine.with_prefix("shared").respond(requests)), expected)
    _assert_equal({k: v for r in requests[::7] for k, v in identities(engine.respond([r])).items()}, expected)
