"""The whole engine through the GPU's kernels: the plain engine's numbers, and the same bits alone and in company."""

from __future__ import annotations

from typing import Any

import pytest

from eval_tasks.engine import load_engine
from eval_tasks.engine.verification import identities
from eval_tasks.records import EngineConfig, EngineTuning

pytestmark = pytest.mark.full  # minutes in the interpreter


@pytest.fixture
def on_kernels(device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every device is computed on as a GPU is."""
    from eval_tasks.engine import cuda

    monkeypatch.setattr(cuda, "uses_kernels", lambda device: True)


def _requests(ask: Any) -> list[Any]:
    first = tuple(range(3, 40))
    return [
        ask("choice", first, "short", continuations=((5,), (6,))),
        ask("choice", (*first[:20], 9, 8), "longer", continuations=((5, 6, 7), (8,), (5, 9))),
        ask("loss", (7,), "loss", continuations=((9, 8, 7, 6),)),
        ask("generation", first, "generation", max_tokens=3),
        ask("generation", first[:9], "generation-2", max_tokens=2),
    ]


@pytest.mark.parametrize("family", ["llama", "qwen3", "gpt2", "gemma2", "qwen3_moe"])
def test_the_engine_on_kernels(build, load, ask, request, family: str) -> None:
    config = EngineConfig(prefix="shared")
    requests = _requests(ask)
    expected = identities(load(family).respond(requests))
    request.getfixturevalue("on_kernels")
    engine = load_engine(build(family), config, EngineTuning(decode_rows=4))
    found = identities(engine.respond(requests))
    for item_id, response in found.items():
        assert response.status == "ok"
        assert response.output_ids == expected[item_id].output_ids
        for mine, other in zip(response.token_logprobs, expected[item_id].token_logprobs, strict=True):
            assert mine == pytest.approx(other, abs=1e-4)
    alone = {k: v for r in requests for k, v in identities(engine.with_prefix("none").respond([r])).items()}
    assert alone == found


def test_replayed_steps_are_the_same_bits(build, ask, on_kernels) -> None:
    from eval_tasks.engine.cuda.graphs import DecodeGraphs

    engine = load_engine(build("llama"), EngineConfig(), EngineTuning(decode_rows=4))
    requests = [r for r in _requests(ask) if r.kind == "generation"]
    without = identities(engine.tuned(EngineTuning(graph_mb=0)).respond(requests))
    recorded = []

    def record(compute: Any) -> Any:
        recorded.append(compute)
        return compute

    body = engine._body
    body.graphs = DecodeGraphs(body._hidden, body.key_values(32), record, lambda: 0)
    assert identities(engine.respond(requests)) == without
    assert len(recorded) == 1
