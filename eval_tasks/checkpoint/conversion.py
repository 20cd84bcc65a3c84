"""A distributed checkpoint and a model's other files -> a Hugging Face folder that can be evaluated, and its record.

The folder appears in one step, when everything in it is written. `conversion.json` in it says what it was made of: the
digests of the source's files, and of what came out.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from eval_tasks.checkpoint.dcp import METADATA, SavedTensor, read_tensor, saved_tensors
from eval_tasks.checkpoint.files import CHECKSUMS, CONFIG, INDEX, TOKENIZER, WEIGHTS, is_weights, moves_numbers
from eval_tasks.checkpoint.manifest import build_manifest
from eval_tasks.checkpoint.storage import Folder, Tap
from eval_tasks.digests import digest_stream, digest_value
from eval_tasks.errors import CheckpointError, InfraError, UserError

RECORD = "conversion.json"
SHARD_BYTES = 4 * 1024**3

_BYTES = {
    "float64": 8,
    "float32": 4,
    "bfloat16": 2,
    "float16": 2,
    "int64": 8,
    "int32": 4,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}
DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """What was converted. `source_digest` names every file of the source by content; `left_out` are tensors that the
    prefix does not choose, such as an optimizer's. `dtype` '' keeps each tensor's own.
    """

    source_uri: str
    source_digest: str
    source_files: dict[str, str]
    model_uri: str
    prefix: str
    dtype: str
    n_tensors: int
    left_out: int
    checkpoint_id: str


def convert(
    source: str,
    *,
    model: str,
    into: Path,
    prefix: str = "",
    dtype: str = "",
    shard_bytes: int = SHARD_BYTES,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Conversion:
    """Write the tensors of `source` whose names begin with `prefix`, without it, beside the files of folder `model`.

    `model` has config.json, tokenizer.json and the like; weights there are not looked at. Holds one file's tensors in
    memory, at most `shard_bytes` or one tensor. `progress(tensors_done, tensors)`. Raises CheckpointError for a source
    that is no distributed checkpoint or contradicts itself, UserError for a prefix that chooses nothing, a folder
    `model` without its files, or a target that exists.
    """
    folder, others = Folder(source), Folder(model)
    if into.exists():
        raise UserError(f"{into} exists; give a folder that does not: what was evaluated is never overwritten")
    if METADATA not in folder.files():
        raise CheckpointError(
            "no_weights", f"{folder.uri} has no {METADATA}: it is no folder that torch.distributed.checkpoint wrote"
        )
    for name in (CONFIG, TOKENIZER):
        if name not in others.files():
            raise UserError(f"{others.uri} has no {name}; give the folder that the model's save_pretrained() wrote")
    saved = saved_tensors(folder)
    chosen = {name.removeprefix(prefix): tensor for name, tensor in saved.items() if name.startswith(prefix)}
    if not chosen:
        raise UserError(
            f"no tensor of {folder.uri} begins with {prefix!r}; its names begin with: "
            + ", ".join(sorted({name.split(".")[0] for name in saved})[:10])
        )
    source_files = _source_digests(folder, {chunk.path for t in chosen.values() for chunk in t.chunks} | {METADATA})
    try:
        into.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{into.name}-", dir=into.parent))
    except OSError as error:
        raise InfraError(f"cannot write beside {into}: {error}") from error
    try:
        _copy_others(others, part)
        _write_weights(folder, chosen, part, dtype, shard_bytes, progress)
        checkpoint = build_manifest(str(part), training_run="converted", step=0)
        record = Conversion(
            source_uri=folder.uri,
            source_digest=digest_value(source_files),
            source_files=source_files,
            model_uri=others.uri,
            prefix=prefix,
            dtype=dtype,
            n_tensors=len(chosen),
            left_out=len(saved) - len(chosen),
            checkpoint_id=checkpoint.checkpoint_id,
        )
        sums = {file.path: {"size": file.size, "blake3": file.blake3} for file in checkpoint.files}
        (part / CHECKSUMS).write_text(json.dumps(sums, indent=1, sort_keys=True) + "\n", "utf-8")
        (part / RECORD).write_text(json.dumps(asdict(record), indent=1, sort_keys=True) + "\n", "utf-8")
        part.chmod(0o755)
        part.rename(into)
    except OSError as error:
        raise InfraError(f"{into} was not written: {error}; free or enlarge that disk") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return record


def _source_digests(folder: Folder, names: set[str]) -> dict[str, str]:
    """blake3 of the files that are read, by name."""
    digests = {}
    for name in sorted(names):
        with folder.open(name) as stream:
            digests[name], _ = digest_stream(Tap(f"{folder.uri}/{name}", stream, len))
    return digests


def _copy_others(others: Folder, part: Path) -> None:
    for name in others.files():
        if moves_numbers(name) and not is_weights(name):
            (part / name).write_bytes(others.read(name))


def _write_weights(
    folder: Folder,
    chosen: dict[str, SavedTensor],
    part: Path,
    dtype: str,
    shard_bytes: int,
    progress: Callable[[int, int], None],
) -> None:
    import torch
    from safetensors.torch import save_file

    groups = list(_groups(chosen, dtype, shard_bytes))
    where: dict[str, str] = {}
    total = 0
    for number, names in enumerate(groups, 1):
        file = WEIGHTS if len(groups) == 1 else f"model-{number:05d}-of-{len(groups):05d}.safetensors"
        tensors = {}
        for name in names:
            tensor = read_tensor(folder, chosen[name])
            tensors[name] = tensor.to(getattr(torch, dtype)) if dtype and tensor.is_floating_point() else tensor
            progress(len(where) + len(tensors), len(chosen))
        save_file(tensors, part / file, metadata={"format": "pt"})
        where |= dict.fromkeys(names, file)
        total += sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    if len(groups) > 1:
        index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(where.items()))}
        (part / INDEX).write_text(json.dumps(index, indent=1) + "\n", "utf-8")


def _groups(chosen: dict[str, SavedTensor], dtype: str, shard_bytes: int) -> Iterator[list[str]]:
    """Names of the tensors of each file, in order: cut by bytes, so that the same source gives the same files."""
    names: list[str] = []
    size = 0
    for name, tensor in sorted(chosen.items()):
        if tensor.dtype not in _BYTES:
            raise CheckpointError(
                "unreadable_weights", f"tensor {name!r} has dtype {tensor.dtype}, which is not converted"
            )
        n_bytes = _BYTES[dtype if dtype and "float" in tensor.dtype else tensor.dtype]
        for n in tensor.shape:
            n_bytes *= n
        if names and size + n_bytes > shard_bytes:
            yield names
            names, size = [], 0
        names.append(name)
        size += n_bytes
    yield names
