"""Norms and log-softmax of a row: right, and the same bits at any number of rows and at any place."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("width", [16, 100, 576])
@pytest.mark.parametrize(("family", "dtype"), [("llama", "float32"), ("llama", "bfloat16"), ("gemma", "float32")])
def test_rms_norm_is_the_models_own(device, family: str, dtype: str, width: int) -> None:
    import torch
    from transformers.models.gemma.modeling_gemma import GemmaRMSNorm
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    from eval_tasks.engine.cuda.rows import pin_norms

    module = {"llama": LlamaRMSNorm, "gemma": GemmaRMSNorm}[family](width, eps=1e-5).to(device, getattr(torch, dtype))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        module.weight.copy_(torch.randn(width, generator=generator))
    x = torch.randn(1, 70, width, generator=generator).to(module.weight)
    expected = module(x)
    assert pin_norms(torch.nn.Sequential(module)) == 1
    found = module(x)
    assert found.dtype == expected.dtype
    # The interpreter cuts bfloat16 off where a GPU rounds: two roundings are two steps of 1/128.
    assert torch.allclose(found.double(), expected.double(), atol=1e-6, rtol=1e-6 if dtype == "float32" else 2e-2)
    for rows in (1, 2, 33):
        assert torch.equal(module(x[:, -rows:]), found[:, -rows:])


def test_a_norm_that_is_not_known_is_named() -> None:
    import torch

    from eval_tasks.engine.cuda.rows import pin_norms

    class StrangeRMSNorm(torch.nn.Module):
        pass

    with pytest.raises(RuntimeError, match="StrangeRMSNorm"):
        pin_norms(torch.nn.Sequential(StrangeRMSNorm()))


@pytest.mark.parametrize("width", [7, 259, 5001])
def test_log_softmax(device, width: int) -> None:
    import torch

    from eval_tasks.engine.cuda.rows import log_softmax

    logits = torch.randn(37, width, generator=torch.Generator().manual_seed(0)).to(device) * 9
    found = log_softmax(logits)
    assert torch.allclose(found.double(), logits.double().log_softmax(dim=-1), atol=1e-5, rtol=1e-6)
    for first in range(3):
        assert torch.equal(log_softmax(logits[first : first + 5]), found[first : first + 5])
    assert log_softmax(logits[:0]).shape == (0, width)
