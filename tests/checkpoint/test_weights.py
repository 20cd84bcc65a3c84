from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from eval_tasks.checkpoint import weights_digest
from eval_tasks.errors import CheckpointError


def test_the_digest_is_the_same_for_any_sharding(single: Path, sharded: Path) -> None:
    assert weights_digest(single) == weights_digest(sharded)


def test_the_order_of_tensors_in_a_file_does_not_matter(
    tmp_path: Path, save_single: Callable[..., Path], tensors: dict[str, np.ndarray]
) -> None:
    turned = save_single(tmp_path / "b", dict(reversed(tensors.items())))
    assert weights_digest(save_single(tmp_path / "a")) == weights_digest(turned)


@pytest.mark.parametrize("change", ["bytes", "name", "shape", "dtype"])
def test_name_dtype_shape_and_bytes_all_count(
    tmp_path: Path, save_single: Callable[..., Path], tensors: dict[str, np.ndarray], change: str
) -> None:
    before = weights_digest(save_single(tmp_path / "a", tensors))
    tensor = tensors.pop("layer.1.weight")
    name = "layer.2.weight" if change == "name" else "layer.1.weight"
    changed = {
        "bytes": tensor + 1,
        "name": tensor,
        "shape": tensor.reshape(2, 8),
        "dtype": tensor.view(np.float32).reshape(4, 2),
    }[change]
    assert weights_digest(save_single(tmp_path / "b", tensors | {name: changed})) != before


def test_it_agrees_with_the_formats_own_library(tmp_path: Path, save_single: Callable[..., Path]) -> None:
    numpy_io = pytest.importorskip("safetensors.numpy")
    folder = save_single(tmp_path / "a")
    before = weights_digest(folder)
    numpy_io.save_file(
        numpy_io.load_file(folder / "model.safetensors"), folder / "model.safetensors", metadata={"format": "pt"}
    )
    assert weights_digest(folder) == before


def test_a_tensor_with_two_contents_is_refused(
    sharded: Path, tensors: dict[str, np.ndarray], to_bytes: Callable[[dict[str, np.ndarray]], bytes]
) -> None:
    shard = sharded / "model-00003-of-00003.safetensors"
    shard.write_bytes(to_bytes({"layer.1.weight": tensors["layer.1.weight"], "embed.weight": np.float32([1])}))
    with pytest.raises(CheckpointError, match=r"embed\.weight") as caught:
        weights_digest(sharded)
    assert caught.value.reason == "shard_mismatch"


def test_broken_weights_have_no_digest(sharded: Path) -> None:
    index = json.loads((sharded / "model.safetensors.index.json").read_text())
    (sharded / index["weight_map"]["embed.weight"]).unlink()
    with pytest.raises(CheckpointError) as caught:
        weights_digest(str(sharded))
    assert caught.value.reason == "missing_shard"


def test_a_tensor_name_that_is_no_text_can_be_told(sharded: Path) -> None:
    index = json.loads((sharded / "model.safetensors.index.json").read_text())
    index["weight_map"]["\ud800\0"] = "model-00001-of-00003.safetensors"
    (sharded / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointError) as caught:
        weights_digest(sharded)
    assert str(caught.value).isprintable()
