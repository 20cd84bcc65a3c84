"""A tiled product is the product, and a row of it has the same bits at any number of rows and at any place."""

from __future__ import annotations

import pytest


def _product(device: str, dtype: str, n_in: int, n_out: int, **options):
    import torch

    from eval_tasks.engine.cuda.products import TiledProduct

    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(n_out, n_in, generator=generator).to(device, getattr(torch, dtype))
    bias = torch.randn(n_out, generator=generator).to(weight)
    x = torch.randn(150, n_in, generator=generator).to(weight)
    return TiledProduct(weight, bias, **options), x, x.double() @ weight.double().T + bias.double()


@pytest.mark.parametrize(("n_in", "n_out"), [(64, 96), (100, 65)])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("bfloat16", 1e-2), ("float16", 2e-3)])
def test_it_is_the_product(device, dtype: str, tolerance: float, n_in: int, n_out: int) -> None:
    import torch

    multiply, x, expected = _product(device, dtype, n_in, n_out)
    found = multiply(x)
    assert found.dtype == x.dtype
    assert torch.allclose(found.double(), expected, atol=20 * tolerance, rtol=tolerance)
    assert multiply(x.view(3, 50, n_in)).shape == (3, 50, n_out)
    assert multiply(x[:0]).shape == (0, n_out)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_rows_are_independent(device, dtype: str) -> None:
    import torch

    multiply, x, _ = _product(device, dtype, 100, 65)
    whole = multiply(x)
    for rows in (1, 2, 3, 16, 33, 64, 129):
        assert torch.equal(multiply(x[-rows:]), whole[-rows:]), rows
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(1)).to(x.device)
    assert torch.equal(multiply(x[order]), whole[order])


def test_sums_of_rounded_inputs_can_be_kept_in_float32(device) -> None:
    import torch

    multiply, x, expected = _product(device, "bfloat16", 64, 96, wide=True)
    found = multiply(x)
    assert found.dtype == torch.float32
    assert torch.allclose(found.double(), expected, atol=1e-4, rtol=1e-5)


def test_tiles_follow_the_weight_alone() -> None:
    from eval_tasks.engine.cuda.products import tiles_of

    assert tiles_of(128256, 2).out > tiles_of(4096, 2).out
    assert tiles_of(128256, 4) == tiles_of(64, 4)
    for itemsize in (2, 4):
        tiles = tiles_of(128256, itemsize)
        # What every GPU from Ampere on has for one program: 99 KiB of shared memory, all stages together.
        assert (tiles.rows + tiles.out) * tiles.inner * itemsize * tiles.stages <= 99 * 1024
