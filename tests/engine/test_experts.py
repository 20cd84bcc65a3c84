"""A token's experts are its own affair, and what they say is what transformers' experts say."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["mixtral", "qwen3_moe", "qwen3_moe-not-normalised"])
def blocks(request: pytest.FixtureRequest):
    """(a layer of experts as transformers computes it, the same one pinned)."""
    import copy

    import torch
    import transformers

    from eval_tasks.engine.experts import pin_experts

    settings = {
        "hidden_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "vocab_size": 10,
        "hidden_act": "silu",
    }
    if request.param == "mixtral":
        own = {"num_local_experts": 5, "num_experts_per_tok": 2, "intermediate_size": 44}
    else:
        own = {"num_experts": 12, "num_experts_per_tok": 3, "moe_intermediate_size": 44}
        own["norm_topk_prob"] = request.param == "qwen3_moe"
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(request.param.partition("-")[0], **settings, **own)
    config._experts_implementation = "eager"
    plain = transformers.AutoModel.from_config(config).eval().requires_grad_(False).layers[0].mlp
    for parameter in plain.parameters():
        parameter.copy_(torch.randn(parameter.shape) * 0.3)
    pinned = copy.deepcopy(plain)
    assert pin_experts(pinned) == [44, 64]
    return plain, pinned


def _rows(n: int):
    import torch

    return torch.randn(1, n, 64, generator=torch.Generator().manual_seed(1))


def test_the_sum_is_that_of_transformers(blocks) -> None:
    import torch

    plain, pinned = blocks
    assert torch.allclose(plain(_rows(200)), pinned(_rows(200)), atol=1e-4, rtol=1e-4)


def test_rows_do_not_know_who_else_goes_to_their_experts(blocks) -> None:
    import torch

    _, pinned = blocks
    x = _rows(200)
    whole = pinned(x)
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            assert torch.equal(pinned(x), whole)
            for rows in (slice(0, 4), slice(3, 15), slice(100, 164), slice(196, 200)):
                assert torch.equal(pinned(x[:, rows]), whole[:, rows]), (threads, rows)
            assert torch.equal(pinned(x.flip(1)), whole.flip(1))
            alone = x[:, 7:8].expand(1, 4, 64).contiguous()
            assert torch.equal(pinned(alone)[:, 0], whole[:, 7])
    finally:
        torch.set_num_threads(before)


def test_their_weights_are_kept_once(blocks) -> None:
    _, pinned = blocks
    assert [p.numel() for p in pinned.parameters()] == [0, 0, 0]


def test_experts_of_a_kind_that_is_not_known_are_never_left_alone() -> None:
    import torch

    from eval_tasks.engine.experts import pin_experts

    class OtherExperts(torch.nn.Module):
        pass

    with pytest.raises(RuntimeError, match="OtherExperts"):
        pin_experts(torch.nn.Sequential(OtherExperts()))


def test_of_equal_experts_the_first_are_taken(blocks) -> None:
    """Where transformers' choice is any."""
    import copy

    import torch

    from eval_tasks.engine.experts import pin_experts

    plain, _ = blocks
    equal = copy.deepcopy(plain)
    equal.gate.weight.zero_()
    gate, top_k = equal.gate, equal.gate.top_k
    pin_experts(equal)
    for n in (4, 60):
        _, weights, chosen = gate(_rows(n)[0])
        assert chosen.tolist() == [list(range(top_k))] * n
        assert torch.equal(weights, weights[:1].expand(n, -1))
