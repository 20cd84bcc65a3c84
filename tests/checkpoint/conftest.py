"""Small checkpoints written by hand: real safetensors bytes, without torch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import fsspec
import numpy as np
import pytest

TENSORS = {
    "embed.weight": np.arange(24, dtype=np.float32).reshape(6, 4),
    "layer.0.weight": np.arange(16, dtype=np.float16).reshape(4, 4),
    "layer.1.weight": np.arange(16, 32, dtype=np.float16).reshape(4, 4),
}
_DTYPES = {"float32": "F32", "float16": "F16"}


def safetensors_bytes(tensors: Mapping[str, np.ndarray]) -> bytes:
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.tobytes()
        offsets = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": _DTYPES[str(tensor.dtype)], "shape": list(tensor.shape), "data_offsets": offsets}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data


def write_small_files(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "max_position_embeddings": 2048}))
    (folder / "tokenizer.json").write_text(json.dumps({"version": "1.0", "model": {"type": "BPE"}}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"add_bos_token": True}))


def write_single(folder: Path, tensors: Mapping[str, np.ndarray] = TENSORS) -> Path:
    write_small_files(folder)
    (folder / "model.safetensors").write_bytes(safetensors_bytes(tensors))
    return folder


def write_sharded(folder: Path, tensors: Mapping[str, np.ndarray] = TENSORS) -> Path:
    """One shard per tensor, and the index last."""
    write_small_files(folder)
    weight_map = {}
    for number, (name, tensor) in enumerate(tensors.items(), start=1):
        shard = f"model-{number:05d}-of-{len(tensors):05d}.safetensors"
        (folder / shard).write_bytes(safetensors_bytes({name: tensor}))
        weight_map[name] = shard
    index = {"metadata": {"total_size": 1}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


@pytest.fixture
def single(tmp_path: Path) -> Path:
    return write_single(tmp_path / "run" / "step-100")


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    return write_sharded(tmp_path / "run" / "step-200")


@pytest.fixture
def save_single() -> Callable[..., Path]:
    return write_single


@pytest.fixture
def save_sharded() -> Callable[..., Path]:
    return write_sharded


@pytest.fixture
def tensors() -> dict[str, np.ndarray]:
    return dict(TENSORS)


@pytest.fixture
def to_bytes() -> Callable[[Mapping[str, np.ndarray]], bytes]:
    return safetensors_bytes


@pytest.fixture
def upload() -> Iterator[Callable[[Path, str], str]]:
    """Copies a local folder into an object store in memory, and gives its URI there."""
    fs = fsspec.filesystem("memory")

    def copy(folder: Path, name: str) -> str:
        for file in sorted(folder.iterdir()):
            fs.pipe(f"/bucket/{name}/{file.name}", file.read_bytes())
        return f"memory://bucket/{name}"

    yield copy
    if fs.exists("/bucket"):
        fs.rm("/bucket", recursive=True)
