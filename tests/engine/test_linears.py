"""A row of a matrix product has the same bits whatever rows are beside it, and is the product it should be."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("n_in", "n_out"), [(1536, 576), (64, 172), (172, 64), (33, 65)])
def test_rows_are_independent(dtype: str, n_in: int, n_out: int) -> None:
    import torch

    from eval_tasks.engine.linears import MIN_ROWS, multiply_by

    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(n_out, n_in, generator=generator).to(getattr(torch, dtype))
    bias = torch.randn(n_out, generator=generator).to(weight.dtype)
    x = torch.randn(640, n_in, generator=generator).to(weight.dtype)
    multiply = multiply_by(weight, bias)
    whole = multiply(x)
    tolerance = 1e-4 if dtype == "float32" else 0.5
    assert torch.allclose(whole.double(), x.double() @ weight.double().T + bias.double(), atol=tolerance, rtol=1e-2)
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            for rows in (MIN_ROWS, 12, 32, 64, 192, 256, 640):
                assert torch.equal(multiply(x[-rows:]), whole[-rows:]), (threads, rows)
    finally:
        torch.set_num_threads(before)


def test_both_kinds_of_layer_are_pinned_and_keep_one_copy_of_their_weights() -> None:
    import torch
    from transformers.pytorch_utils import Conv1D

    from eval_tasks.engine.linears import pin_linears

    model = torch.nn.Sequential(torch.nn.Linear(8, 24), Conv1D(16, 24))
    x = torch.randn(4, 8)
    expected = model(x)
    assert pin_linears(model) == [8, 16, 24]
    assert torch.allclose(model(x), expected, atol=1e-5)
    assert [layer.weight.numel() for layer in model] == [0, 0]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_is_added_inside_a_product_is_the_sum_and_a_row_is_its_own(dtype: str) -> None:
    import torch

    from eval_tasks.engine.linears import Product

    generator = torch.Generator().manual_seed(0)
    own = getattr(torch, dtype)
    product = Product(torch.randn(96, 600, generator=generator).to(own), torch.randn(96, generator=generator).to(own))
    x = torch.randn(2, 100, 600, generator=generator).to(own)
    term = torch.randn(2, 100, 96, generator=generator).to(own)
    whole = product.plus(x, term)
    torch.testing.assert_close(whole, product(x) + term, rtol=1e-5 if dtype == "float32" else 0, atol=0)
    assert torch.equal(product.plus(x, None), product(x))
    for rows in (4, 33, 64, 100):
        assert torch.equal(product.plus(x[:, -rows:], term[:, -rows:]), whole[:, -rows:])
