"""Replaced layers compute what transformers' own do, for a row by itself; no verified family slips through by name."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.engine.conftest import FAMILIES

ROTARY = [family for family in FAMILIES if family != "gpt2"]
# Families whose layers have nothing between a product and its residual.
PLAIN_RESIDUALS = ("gemma", "llama", "mistral", "qwen2", "qwen3")


def _model(folder, dtype="float32"):
    import torch
    import transformers

    load = transformers.AutoModelForCausalLM.from_pretrained
    return load(folder, dtype=getattr(torch, dtype), attn_implementation="eager").eval()


@pytest.mark.parametrize("family", ROTARY)
def test_every_layer_of_a_verified_family_is_known_by_name(build, family: str) -> None:
    from eval_tasks.engine.layers import ATTENTIONS, DECODER_LAYERS, RMS_NORMS, RotaryAttention, pin_layers
    from eval_tasks.engine.linears import pin_linears

    base = _model(build(family)).base_model
    names = {type(module).__name__ for module in base.modules()}
    assert {name for name in names if name.endswith("RMSNorm")} <= set(RMS_NORMS)
    assert {name for name in names if name.endswith("Attention")} <= set(ATTENTIONS)
    assert bool(names & set(DECODER_LAYERS)) == (family in PLAIN_RESIDUALS)
    pin_linears(base)
    pin_layers(base)
    for layer in base.layers:
        assert isinstance(layer.self_attn.forward, RotaryAttention)
        assert ("forward" in vars(layer)) == (family in PLAIN_RESIDUALS)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("family", ROTARY)
def test_a_norm_is_transformers_own_and_a_row_is_its_own(build, family: str, dtype: str) -> None:
    import torch

    from eval_tasks.engine.layers import RMS_NORMS, pin_layers

    base = _model(build(family), dtype).base_model
    norms = [module for module in base.modules() if type(module).__name__ in RMS_NORMS]
    inputs = [
        torch.randn(256, norm.weight.shape[0], generator=torch.Generator().manual_seed(3)).to(norm.weight.dtype)
        for norm in norms
    ]
    with torch.inference_mode():
        expected = [norm(x) for norm, x in zip(norms, inputs, strict=True)]
        pin_layers(base)
        for norm, x, own in zip(norms, inputs, expected, strict=True):
            found = norm(x)
            assert found.dtype == own.dtype
            # The last bit of a bfloat16, where a float32 sum lies on either side of a half.
            tolerance = {"rtol": 1e-6, "atol": 1e-6} if dtype == "float32" else {"rtol": 2**-7, "atol": 1e-6}
            torch.testing.assert_close(found, own, **tolerance)
            _assert_rows_are_their_own(norm.forward, x, found)


def test_rotated_is_the_published_rotation_and_a_row_is_its_own() -> None:
    import torch
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    from eval_tasks.engine.layers import rotated

    generator = torch.Generator().manual_seed(5)
    x = torch.randn(256, 3, 24, generator=generator)
    angles = torch.randn(256, 12, generator=generator).repeat(1, 2)
    cos, sin = angles.cos(), angles.sin()
    expected, _ = apply_rotary_pos_emb(x, x, cos, sin, unsqueeze_dim=1)
    found = rotated(x, cos[:, None], sin[:, None])
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    wide = torch.cat((x.flatten(1), cos, sin), dim=1)

    def of_rows(rows):
        return rotated(rows[:, :72].reshape(-1, 3, 24), rows[:, None, 72:96], rows[:, None, 96:])

    _assert_rows_are_their_own(of_rows, wide, found)


def test_a_window_that_transformers_does_not_read_is_not_read(build) -> None:
    from eval_tasks.engine.layers import RotaryAttention, pin_layers
    from eval_tasks.engine.linears import pin_linears

    base = _model(build("llama")).base_model
    base.config.sliding_window = 3
    pin_linears(base)
    pin_layers(base)
    attention = base.layers[0].self_attn.forward
    assert isinstance(attention, RotaryAttention)
    assert attention.form.window is None


def test_attention_refuses_a_mask(build) -> None:
    import torch

    from eval_tasks.engine.layers import RotaryAttention

    attention = RotaryAttention(SimpleNamespace(), SimpleNamespace())
    x = torch.zeros(1, 4, 8)
    with pytest.raises(ValueError, match="was given a mask"):
        attention(x, (x, x), x, attend=lambda *_: x)


def _assert_rows_are_their_own(function, x, whole) -> None:
    """The same bits for 4 to 256 rows, on one thread and on two."""
    import torch

    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            for rows in (4, 12, 32, 100, 256):
                assert torch.equal(function(x[-rows:]), whole[-rows:]), (threads, rows)
    finally:
        torch.set_num_threads(before)
