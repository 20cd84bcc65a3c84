"""A GPU that cannot be used is refused by name; so is a benchmark of it where there is none."""

from __future__ import annotations

import importlib.util

import pytest

from eval_tasks.engine.cuda import check_cuda
from eval_tasks.errors import InfraError, UserError


def test_triton_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InfraError, match="triton is not installed"):
        check_cuda()


@pytest.mark.parametrize(("capability", "refused"), [((7, 5), True), ((8, 0), False), ((9, 0), False)])
def test_an_old_gpu_is_named(monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], refused: bool) -> None:
    import torch

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Tesla T4")
    if refused:
        with pytest.raises(UserError, match=r"Tesla T4 has compute capability 7\.5"):
            check_cuda()
    else:
        check_cuda()


def test_the_benchmark_says_that_there_is_no_gpu(capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from tests.benchmarks import engine_gpu

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert engine_gpu.main([]) == 1
    assert "no GPU" in capsys.readouterr().err
