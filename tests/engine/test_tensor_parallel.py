"""Two ranks share a model's layers: rows are the same on both, whatever their company, and those of the whole model."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from eval_tasks.engine import Engine, load_engine
from eval_tasks.engine.memory import Workload, fitted
from eval_tasks.engine.room import Room
from eval_tasks.engine.sentinels import sentinel_requests
from eval_tasks.engine.verification import identities
from eval_tasks.errors import CheckpointError
from eval_tasks.records import EngineConfig, EngineTuning, Request, Response

TWO = EngineConfig(tensor_parallel=2)
SHARED = [("gemma2", "float32"), ("llama", "bfloat16"), ("qwen2", "float32")]


class Meeting:
    """Sums of two threads, each of which is a rank."""

    def __init__(self) -> None:
        self._barrier = threading.Barrier(2, timeout=60)
        self._parts: list[Any] = [None, None]
        self.n_sums = 0

    def total(self, rank: int, part: Any) -> Any:
        self._parts[rank] = part
        self._barrier.wait()
        total = self._parts[0] + self._parts[1]
        self.n_sums += rank
        self._barrier.wait()
        return total


class Pair:
    """The two ranks of one checkpoint, in two threads of this process."""

    def __init__(self, folder: Any, dtype: Any) -> None:
        from eval_tasks.engine.engine import assemble
        from eval_tasks.engine.loading import load_model
        from eval_tasks.engine.runtime import prepare_torch
        from eval_tasks.tokenization import load_tokenizer

        config = EngineConfig(dtype=dtype, tensor_parallel=2)
        device = prepare_torch(config)
        tokenizer = load_tokenizer(folder)
        self.meeting = Meeting()
        self.engines: list[Engine] = []
        for rank in range(2):
            model = load_model(folder, dtype, device, tokenizer.vocab_size)
            body, head = assemble(model, config, rank=rank, total=partial(self.meeting.total, rank))
            self.engines.append(
                Engine(config=config, tuning=EngineTuning(), tokenizer=tokenizer, body=body, head=head, context=200)
            )

    def respond(self, requests: Sequence[Request], tuning: EngineTuning, prefix: Any = "none") -> dict[str, Response]:
        found: list[dict[str, Response]] = [{}, {}]

        def run(rank: int) -> None:
            found[rank] = identities(self.engines[rank].with_prefix(prefix).tuned(tuning).respond(requests))

        follower = threading.Thread(target=run, args=(1,))
        follower.start()
        run(0)
        follower.join()
        assert found[0] == found[1]
        return found[0]


@pytest.fixture(scope="module", params=SHARED, ids="-".join)
def pair(build, request: pytest.FixtureRequest) -> Pair:
    family, dtype = request.param
    return Pair(build(family), dtype)


def test_rows_know_no_other_row(pair: Pair) -> None:
    requests = sentinel_requests(259, 200)[::7]
    expected = pair.respond(requests, EngineTuning())
    few, many = EngineTuning(tokens_per_forward=7, decode_rows=4), EngineTuning(tokens_per_forward=900, decode_rows=64)
    assert pair.meeting.n_sums > 0
    for found in (
        pair.respond(requests[::-1], few),
        pair.respond(requests, many, "shared"),
        *(pair.respond([request], EngineTuning()) for request in requests[::6]),
    ):
        assert {item_id: row for item_id, row in found.items() if row != expected[item_id]} == {}


def test_rows_are_those_of_the_whole_model(pair: Pair, build, request: pytest.FixtureRequest) -> None:
    requests = sentinel_requests(259, 200)[1::9]
    family, dtype = request.node.callspec.params["pair"]
    whole = identities(load_engine(build(family), EngineConfig(dtype=dtype)).respond(requests))
    tolerance = 1e-3 if dtype == "float32" else 1.0
    for item_id, row in pair.respond(requests, EngineTuning()).items():
        assert row.logprobs == pytest.approx(whole[item_id].logprobs, abs=tolerance * max(1, row.n_output_tokens))


def test_a_shared_sum_has_its_bias_once() -> None:
    import torch

    from eval_tasks.engine.tensor_parallel import SharedProduct

    torch.manual_seed(0)
    weight, bias, x = torch.randn(24, 64), torch.randn(24), torch.randn(8, 64)
    other = x[:, 32:] @ weight[:, 32:].T
    layer = SharedProduct(weight[:, :32].contiguous(), bias, lambda part: part + other)
    assert torch.allclose(layer(x[:, :32].contiguous()), x @ weight.T + bias, atol=1e-4)


@pytest.mark.parametrize(
    ("family", "changes", "named"),
    [
        ("gpt2", {}, "plan for 'gpt2' is not there"),
        ("mixtral", {}, "moe_tp_experts"),
        ("llama", {"num_attention_heads": 3, "num_key_value_heads": 1, "hidden_size": 96}, "num_attention_heads is 3"),
        ("llama", {"num_key_value_heads": 1}, "num_key_value_heads is 1"),
        ("llama", {"intermediate_size": 171}, "intermediate_size is 171"),
    ],
)
def test_a_model_that_cannot_be_shared_is_refused_by_name(build, family: str, changes: Any, named: str) -> None:
    with pytest.raises(CheckpointError, match=named) as caught:
        load_engine(build(family, **changes), TWO)
    assert caught.value.reason == "tensor_parallel_unsupported"


def test_every_rank_needs_its_room(build) -> None:
    work = Workload(prompt_tokens=1, output_tokens=0, n_sequences=1, generates=False)
    room = Room(n_bytes=300 << 20, source="a test")
    assert fitted(build("llama"), EngineConfig(), EngineTuning(), work, lambda _device: room)
    with pytest.raises(CheckpointError, match=r"150 MiB are free .*for each of the ranks") as caught:
        fitted(build("llama"), TWO, EngineTuning(), work, lambda _device: room)
    assert caught.value.reason == "does_not_fit"
