"""Configurations outside the contract are refused; what is asked of torch is set, and it is checked that it took."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from eval_tasks.engine.runtime import check_config, pin_threads, prepare_torch
from eval_tasks.errors import InfraError, UserError
from eval_tasks.records import EngineConfig, EngineTuning


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"threads": 3}, "threads is 3"),
        ({"threads": 0}, "threads is 0"),
        ({"decoding": "sampling"}, "decoding is 'sampling'"),
        ({"attention": "sdpa"}, "attention is 'sdpa'"),
        ({"tile": 64}, "tile is 64"),
        ({"tensor_parallel": 3}, "tensor_parallel is 3"),
        ({"tensor_parallel": 2, "device": "cuda"}, "verified on 'cpu'"),
        ({"tensor_parallel": 2, "attention": "reference"}, "with 'tile' only"),
        ({"deterministic": False}, "deterministic is false"),
        ({"dtype": "float16"}, "float16 needs device cuda"),
    ],
)
def test_a_configuration_outside_the_contract_is_refused(change: dict[str, object], named: str) -> None:
    with pytest.raises(UserError, match=named):
        check_config(dataclasses.replace(EngineConfig(), **change), EngineTuning())


@pytest.mark.parametrize("change", [{"tokens_per_forward": 0}, {"decode_rows": 0}, {"prefix_cache_mb": -1}])
def test_tuning_values_have_a_least(change: dict[str, int]) -> None:
    with pytest.raises(UserError, match=next(iter(change))):
        check_config(EngineConfig(), EngineTuning(**change))


def test_torch_is_pinned() -> None:
    import torch

    torch.use_deterministic_algorithms(False)
    torch.set_float32_matmul_precision("medium")
    prepare_torch(EngineConfig())
    assert torch.are_deterministic_algorithms_enabled()
    assert torch.get_float32_matmul_precision() == "highest"
    assert torch.get_num_threads() == 1


def test_flags_that_move_bits_are_set() -> None:
    import torch

    torch.set_flush_denormal(True)
    torch.backends.cudnn.benchmark = True
    torch.backends.mkldnn.deterministic = False
    prepare_torch(EngineConfig())
    assert torch.backends.cudnn.deterministic and not torch.backends.cudnn.benchmark
    assert torch.backends.mkldnn.deterministic
    assert torch.tensor([1e-40]).mul(1.0).item() > 0


def test_what_another_library_keeps_changing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch, "set_float32_matmul_precision", lambda _precision: None)
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "medium")
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.raises(InfraError, match="keep float32 products in float32, float32 as the default dtype: another"):
            prepare_torch(EngineConfig())
    finally:
        torch.set_default_dtype(torch.float32)


def test_autocast_is_noticed() -> None:
    import torch

    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(InfraError, match="did not keep no autocast"):
        prepare_torch(EngineConfig())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NVIDIA_TF32_OVERRIDE", "1"),
        ("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "1"),
        ("ONEDNN_DEFAULT_FPMATH_MODE", "BF16"),
        ("DNNL_DEFAULT_FPMATH_MODE", "any"),
    ],
)
def test_a_variable_that_takes_bits_from_float32_is_refused(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match=f"{name}={value}, by which .* unset it"):
        prepare_torch(EngineConfig())


@pytest.mark.parametrize(("name", "value"), [("NVIDIA_TF32_OVERRIDE", "0"), ("ONEDNN_DEFAULT_FPMATH_MODE", "strict")])
def test_the_same_variable_with_its_exact_value_is_not(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    prepare_torch(EngineConfig())


def test_a_torch_that_does_not_take_its_threads_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    with pytest.raises(InfraError, match="runs 7 threads where 1"):
        pin_threads(EngineConfig())


def test_cuda_without_a_gpu_is_refused() -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(UserError, match="sees no GPU"):
        prepare_torch(EngineConfig(device="cuda"))


def test_importing_the_engine_imports_no_torch() -> None:
    code = (
        "import sys, eval_tasks.engine, eval_tasks.environment; "
        "sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
