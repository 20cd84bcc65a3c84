"""A folder's safetensors files -> which of them a model is loaded from, their tensors, and the digest of the weights.

Follows the loader's order: `model.safetensors` when it is there, else `model.safetensors.index.json` and its shards.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO

from eval_tasks.checkpoint.files import INDEX, WEIGHTS, is_pickle, is_shard
from eval_tasks.checkpoint.headers import MAX_HEADER_BYTES, Tensor, header_bytes, parse_header
from eval_tasks.checkpoint.reasons import Problem
from eval_tasks.checkpoint.storage import Folder, StoredFile, Tap
from eval_tasks.digests import digest_stream, digest_value
from eval_tasks.errors import CheckpointError

_POINTERS = (b"version https://git-lfs", b"/annex/objects/", b"../.git/annex/objects/")
_POINTER_MAX_BYTES = 1024

Weights = Mapping[str, tuple[Tensor, ...]]


def find_weights(folder: Folder, files: Mapping[str, StoredFile]) -> Weights | Problem:
    """Tensors by file of all the files that make up the weights, or what is wrong. Reads headers only."""
    if WEIGHTS in files:
        tensors = read_tensors(folder, files[WEIGHTS])
        return tensors if isinstance(tensors, Problem) else {WEIGHTS: tensors}
    if INDEX in files:
        return _sharded(folder, files)
    return _no_weights(folder, files)


def _no_weights(folder: Folder, files: Mapping[str, StoredFile]) -> Problem:
    shards = [name for name in files if is_shard(name)]
    if shards:
        return Problem(
            reason="no_index",
            message=f"{folder.uri} has {len(shards)} shards ({shards[0]} ...) and no {INDEX}; wait for it, or write it",
        )
    pickles = [name for name in files if is_pickle(name)]
    if pickles:
        return Problem(
            reason="pickle_only",
            message=f"{folder.uri} has weights only as {', '.join(pickles[:5])}, which can run code when loaded; "
            "save the model with safe_serialization=True",
        )
    adapter = " (an adapter is there: merge it into its base model)" if "adapter_config.json" in files else ""
    return Problem(
        reason="no_weights",
        message=f"{folder.uri} has neither {WEIGHTS} nor {INDEX}{adapter}; found: {_names(files)}",
    )


def _sharded(folder: Folder, files: Mapping[str, StoredFile]) -> Weights | Problem:
    where = f"{folder.uri}/{INDEX}"
    index = read_json(folder, files[INDEX], torn="torn_index")
    if isinstance(index, Problem):
        return index
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        return Problem(reason="torn_index", message=f"{where} has no 'weight_map'; write the index again")
    by_shard: dict[str, set[str]] = {}
    for tensor, shard in weight_map.items():
        if not isinstance(shard, str) or "/" in shard or "\\" in shard or not shard.endswith(".safetensors"):
            return Problem(
                reason="torn_index",
                message=f"{where} puts tensor {tensor!r} into {shard!r}, which is no safetensors file beside it",
            )
        by_shard.setdefault(shard, set()).add(tensor)
    missing = sorted(by_shard.keys() - files.keys())
    if missing:
        return Problem(
            reason="missing_shard",
            message=f"{where} names {len(by_shard)} shards and {len(missing)} are not there: {_names(missing)}; "
            "wait for the upload to end, or upload them",
        )
    return _read_shards(folder, files, by_shard)


def _read_shards(
    folder: Folder, files: Mapping[str, StoredFile], by_shard: Mapping[str, set[str]]
) -> Weights | Problem:
    weights: dict[str, tuple[Tensor, ...]] = {}
    unfinished: Problem | None = None
    for shard in sorted(by_shard):
        tensors = read_tensors(folder, files[shard])
        if isinstance(tensors, Problem):
            # A shard that can never be right says more than an earlier one that is still being written.
            if not tensors.heals:
                return tensors
            unfinished = unfinished or tensors
            continue
        absent = sorted(by_shard[shard] - {tensor.name for tensor in tensors})
        if absent:
            return Problem(
                reason="shard_mismatch",
                message=f"{folder.uri}/{shard} lacks {len(absent)} tensors that {INDEX} puts into it: "
                f"{_names(absent)}; index and shards are of two saves, save the checkpoint again",
            )
        weights[shard] = tensors
    return unfinished or weights


def read_tensors(folder: Folder, file: StoredFile) -> tuple[Tensor, ...] | Problem:
    """The tensors of one safetensors file by its header, or what is wrong with the file."""
    where = f"{folder.uri}/{file.path}"
    problem = empty_or_pointer(folder, file)
    if problem:
        return problem
    length = header_bytes(folder.read(file.path, 0, 8)) if file.size >= 8 else 0
    # A file that was given its full size before its bytes begins with zeros: no header yet.
    if length == 0:
        return Problem(
            reason="torn_header",
            message=f"{where} has {file.size} bytes and no header in them; wait for the upload to end, "
            "or upload it again",
        )
    if length > MAX_HEADER_BYTES:
        return Problem(
            reason="bad_header",
            message=f"{where} is no safetensors file: its first 8 bytes give a header of {length} bytes "
            f"(at most {MAX_HEADER_BYTES}); save it again",
        )
    if file.size < 8 + length:
        return Problem(
            reason="torn_header",
            message=f"{where} has {file.size} bytes and its header alone should end at {8 + length}; "
            "wait for the upload to end, or upload it again",
        )
    return parse_header(where, folder.read(file.path, 0, 8 + length), file.size)


def empty_or_pointer(folder: Folder, file: StoredFile) -> Problem | None:
    """The problem of a file with no bytes, or with a pointer to content instead of content."""
    where = f"{folder.uri}/{file.path}"
    if file.size == 0:
        return Problem(
            reason="zero_byte", message=f"{where} has 0 bytes; wait for the upload to end, or upload it again"
        )
    if file.size <= _POINTER_MAX_BYTES and folder.read(file.path).startswith(_POINTERS):
        return Problem(
            reason="pointer_file",
            message=f"{where} ({file.size} bytes) is a pointer, not the file it points to; run `git lfs pull` (or "
            "`git annex get .`) where it was copied from, and copy it again",
        )
    return None


def read_json(folder: Folder, file: StoredFile, torn: str = "unreadable_json") -> dict[str, object] | Problem:
    """A JSON object from storage, or what is wrong with it; `torn` is the reason when it cannot be parsed."""
    problem = empty_or_pointer(folder, file)
    if problem:
        return problem
    where = f"{folder.uri}/{file.path}"
    try:
        value = json.loads(folder.read(file.path))
    except (ValueError, RecursionError) as error:
        return Problem(
            reason=torn,
            message=f"{where} ({file.size} bytes) is not JSON: {error}; wait for the upload to end, or upload it again",
        )
    if not isinstance(value, dict):
        return Problem(reason=torn, message=f"{where} holds a {type(value).__name__}, and an object is expected")
    return value


def read_headers(path: Path | str) -> list[Tensor]:
    """Every tensor of the weights in `path` once, by name, from the files' headers alone.

    Raises CheckpointError when the files cannot be read as weights.
    """
    folder = Folder(str(path))
    weights = find_weights(folder, folder.files())
    if isinstance(weights, Problem):
        raise CheckpointError(weights.reason, weights.message)
    found = {tensor.name: tensor for tensors in weights.values() for tensor in tensors}
    return [found[name] for name in sorted(found)]


def weights_digest(path: Path | str) -> str:
    """Digest of every tensor's name, dtype, shape and bytes: the same for any sharding of the same weights.

    Raises CheckpointError when the files cannot be read as weights or two of them give one tensor different values.
    """
    folder = Folder(str(path))
    weights = find_weights(folder, folder.files())
    if isinstance(weights, Problem):
        raise CheckpointError(weights.reason, weights.message)
    seen: dict[str, list[object]] = {}
    for shard in sorted(weights):
        with folder.open(shard) as stream:
            for tensor in weights[shard]:
                content: list[object] = [
                    tensor.dtype,
                    list(tensor.shape),
                    _digest_range(f"{folder.uri}/{shard}", stream, tensor),
                ]
                if seen.setdefault(tensor.name, content) != content:
                    raise CheckpointError(
                        "shard_mismatch",
                        f"{folder.uri}: tensor {tensor.name!r} is in two shards with different content, one of them "
                        f"{shard}; save the checkpoint again",
                    )
    return digest_value([[name, *seen[name]] for name in sorted(seen)])


def _digest_range(where: str, stream: IO[bytes], tensor: Tensor) -> str:
    stream.seek(tensor.begin)
    digest, size = digest_stream(Tap(where, stream, len, limit=tensor.end - tensor.begin))
    if size != tensor.end - tensor.begin:
        raise CheckpointError("truncated", f"{where} became shorter while it was read; upload it again")
    return digest


def _names(names: Iterable[str]) -> str:
    """At most five names, and how many more."""
    listed = [name if name.isprintable() else repr(name) for name in names]
    return (", ".join(listed[:5]) or "nothing") + (f" and {len(listed) - 5} more" if len(listed) > 5 else "")
