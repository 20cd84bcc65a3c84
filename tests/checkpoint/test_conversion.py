"""Distributed checkpoints that torch wrote -> folders that can be evaluated; what is torn or hostile is refused."""

from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as torch_dcp
from click.testing import CliRunner
from safetensors.torch import load_file
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata

from eval_tasks.checkpoint import build_manifest, convert
from eval_tasks.checkpoint.dcp import read_tensor, saved_tensors
from eval_tasks.checkpoint.storage import Folder
from eval_tasks.cli.main import cli
from eval_tasks.errors import CheckpointError, UserError
from tests.planned import write_checkpoint


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("model") / "step-1")


@pytest.fixture
def source(model: Path, tmp_path: Path) -> Path:
    """The model's weights with an optimizer's state, as a trainer saves them."""
    weights = load_file(model / "model.safetensors")
    state: dict[str, Any] = {"model": weights, "optim": {"lr": 0.1, "moment": torch.zeros(3)}, "step": 7}
    return save(state, tmp_path / "dcp")


def save(state: dict[str, Any], folder: Path) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that it saves from one process
        torch_dcp.save(state, checkpoint_id=folder, no_dist=True)
    return folder


def changed(folder: Path, change: Any) -> Path:
    """The checkpoint with its metadata changed in place."""
    path = folder / ".metadata"
    metadata = pickle.loads(path.read_bytes())
    change(metadata)
    path.write_bytes(pickle.dumps(metadata))
    return folder


def test_the_model_comes_out_bit_for_bit_and_can_be_evaluated(source: Path, model: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    made = convert(
        str(source),
        model=str(model),
        into=tmp_path / "out/step-1",
        prefix="model.",
        progress=lambda done, total: seen.append((done, total)),
    )
    before, after = (load_file(folder / "model.safetensors") for folder in (model, tmp_path / "out/step-1"))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) and before[name].dtype == after[name].dtype for name in before)
    assert (made.n_tensors, made.left_out) == (len(before), 1)
    assert seen[-1] == (len(before), len(before))
    record = json.loads((tmp_path / "out/step-1/conversion.json").read_text("utf-8"))
    manifest = build_manifest(str(tmp_path / "out/step-1"), training_run="r", step=1)
    assert record["checkpoint_id"] == made.checkpoint_id == manifest.checkpoint_id
    assert record["source_files"].keys() == {".metadata", "__0_0.distcp"}
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["step-1"]


def test_the_checksums_beside_it_are_those_of_the_bytes(source: Path, model: Path, tmp_path: Path) -> None:
    made = convert(str(source), model=str(model), into=tmp_path / "out", prefix="model.")
    (tmp_path / "out/checksums.blake3.json").unlink()
    assert build_manifest(str(tmp_path / "out"), training_run="r", step=1).checkpoint_id == made.checkpoint_id


def test_files_are_cut_by_bytes_and_the_index_finds_every_tensor(source: Path, model: Path, tmp_path: Path) -> None:
    convert(str(source), model=str(model), into=tmp_path / "out", prefix="model.", shard_bytes=20_000)
    files = sorted((tmp_path / "out").glob("*.safetensors"))
    assert len(files) > 1
    merged = {name: tensor for file in files for name, tensor in load_file(file).items()}
    assert merged.keys() == load_file(model / "model.safetensors").keys()
    assert build_manifest(str(tmp_path / "out"), training_run="r", step=1).n_parameters == sum(
        tensor.numel() for tensor in merged.values()
    )


def test_weights_are_rounded_only_when_that_is_asked(source: Path, model: Path, tmp_path: Path) -> None:
    made = convert(str(source), model=str(model), into=tmp_path / "out", prefix="model.", dtype="bfloat16")
    assert {tensor.dtype for tensor in load_file(tmp_path / "out/model.safetensors").values()} == {torch.bfloat16}
    assert made.dtype == "bfloat16"


def test_a_tensor_that_ranks_saved_in_blocks_is_put_together(tmp_path: Path) -> None:
    whole = torch.arange(24.0).reshape(6, 4)
    folder = save({"top": whole[:2].clone(), "rest": whole[2:].clone()}, tmp_path / "dcp")

    def join(metadata: Any) -> None:
        first, second = metadata.state_dict_metadata.pop("top"), metadata.state_dict_metadata.pop("rest")
        first.size = torch.Size([6, 4])
        second.chunks = [ChunkStorageMetadata(offsets=torch.Size([2, 0]), sizes=torch.Size([4, 4]))]
        first.chunks = [*second.chunks, *first.chunks]
        metadata.state_dict_metadata["w"] = first
        for index in list(metadata.storage_data):
            offset = torch.Size([2, 0]) if index.fqn == "rest" else torch.Size([0, 0])
            info = metadata.storage_data.pop(index)
            metadata.storage_data[type(index)(fqn="w", offset=offset)] = info

    changed(folder, join)
    tensor = saved_tensors(Folder(str(folder)))["w"]
    assert [chunk.begin for chunk in tensor.chunks] == [(0, 0), (2, 0)]
    assert torch.equal(read_tensor(Folder(str(folder)), tensor), whole)


class Hostile:
    """A pickle that would make a file when it is read."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return (Path.touch, (self.target,))


def test_code_in_the_metadata_is_not_run(source: Path, model: Path, tmp_path: Path) -> None:
    (source / ".metadata").write_bytes(pickle.dumps(Hostile(tmp_path / "touched")))
    with pytest.raises(CheckpointError, match="which torch does not write there"):
        convert(str(source), model=str(model), into=tmp_path / "out")
    assert not (tmp_path / "touched").exists() and not (tmp_path / "out").exists()


def test_code_in_a_tensors_bytes_is_not_run(tmp_path: Path) -> None:
    folder = save({"w": torch.ones(4)}, tmp_path / "dcp")
    payload = pickle.dumps(Hostile(tmp_path / "touched"))
    data = bytearray((folder / "__0_0.distcp").read_bytes())
    data[: len(payload)] = payload
    (folder / "__0_0.distcp").write_bytes(data)
    with pytest.raises(CheckpointError, match="are no tensor"):
        read_tensor(Folder(str(folder)), saved_tensors(Folder(str(folder)))["w"])
    assert not (tmp_path / "touched").exists()


def missing_block(metadata: Any) -> None:
    metadata.state_dict_metadata["w"].size = torch.Size([9])


def outside(metadata: Any) -> None:
    metadata.state_dict_metadata["w"].chunks[0].offsets = torch.Size([2])


def nowhere(metadata: Any) -> None:
    metadata.storage_data.clear()


def elsewhere(metadata: Any) -> None:
    for info in metadata.storage_data.values():
        info.relative_path = "../secret"


def transformed(metadata: Any) -> None:
    for info in metadata.storage_data.values():
        info.transform_descriptors = ["zstd"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (missing_block, "do not make up its shape"),
        (outside, "does not say where block"),
        (nowhere, "does not say where block"),
        (elsewhere, "no file of the checkpoint's folder"),
        (transformed, "without stream transforms"),
    ],
)
def test_metadata_that_contradicts_itself_is_refused(change: Any, says: str, tmp_path: Path) -> None:
    folder = changed(save({"w": torch.ones(4)}, tmp_path / "dcp"), change)
    with pytest.raises(CheckpointError, match=says):
        saved_tensors(Folder(str(folder)))


def test_a_cut_file_is_refused_and_leaves_nothing(source: Path, model: Path, tmp_path: Path) -> None:
    data = (source / "__0_0.distcp").read_bytes()
    (source / "__0_0.distcp").write_bytes(data[: len(data) // 2])
    with pytest.raises(CheckpointError, match="are no tensor"):
        convert(str(source), model=str(model), into=tmp_path / "out/step-1", prefix="model.")
    assert list((tmp_path / "out").iterdir()) == []


def test_what_a_person_gets_wrong_is_named(source: Path, model: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"begins with 'modl\.'; its names begin with: model, optim"):
        convert(str(source), model=str(model), into=tmp_path / "out", prefix="modl.")
    with pytest.raises(UserError, match="never overwritten"):
        convert(str(source), model=str(model), into=model, prefix="model.")
    with pytest.raises(CheckpointError, match=r"has no \.metadata"):
        convert(str(model), model=str(model), into=tmp_path / "out")
    with pytest.raises(UserError, match=r"has no config\.json"):
        convert(str(source), model=str(tmp_path), into=tmp_path / "out")


def test_the_command_says_what_was_made_of_what(source: Path, model: Path, tmp_path: Path) -> None:
    arguments = ["convert", str(source), "--model", str(model), "--into", str(tmp_path / "out"), "--prefix", "model."]
    done = CliRunner().invoke(cli, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["checkpoint_id"] == build_manifest(str(tmp_path / "out"), training_run="r", step=1).checkpoint_id
