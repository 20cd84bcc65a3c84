"""A folder that torch.distributed.checkpoint wrote -> its tensors. Runs no code that lies in it.

Its `.metadata` is a pickle. It is read by an unpickler that knows the dozen plain records that torch writes there, and
refuses any other name before anything is called. Tensors are read with ``weights_only``; other objects (a learning
rate, a step) are pickles again, and never read.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eval_tasks.checkpoint.storage import Folder
from eval_tasks.errors import CheckpointError

if TYPE_CHECKING:
    import torch

METADATA = ".metadata"

_RECORDS = {
    "torch.distributed.checkpoint.metadata": {
        "Metadata",
        "TensorStorageMetadata",
        "BytesStorageMetadata",
        "ChunkStorageMetadata",
        "TensorProperties",
        "MetadataIndex",
        "StorageMeta",
        "_MEM_FORMAT_ENCODING",
    },
    "torch.distributed.checkpoint.filesystem": {"_StorageInfo"},
    "torch.serialization": {"_get_layout"},
    "torch": {"Size"},
    "collections": {"OrderedDict"},
    "pathlib": {"PosixPath", "PurePosixPath"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A block of a tensor: where it begins in it, its shape, and the bytes that hold it."""

    begin: tuple[int, ...]
    shape: tuple[int, ...]
    path: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedTensor:
    """A tensor of a distributed checkpoint: its shape, dtype (as torch names it, ``bfloat16``) and blocks."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    chunks: tuple[Chunk, ...]


def saved_tensors(folder: Folder) -> dict[str, SavedTensor]:
    """The tensors of the checkpoint by name, sorted. Reads the metadata alone.

    Raises CheckpointError when it is no such checkpoint, names what torch does not write there, or contradicts itself.
    """
    where = f"{folder.uri}/{METADATA}"
    metadata = _unpickled(where, folder.read(METADATA))
    try:
        places = {
            (index.fqn, None if index.offset is None else tuple(index.offset)): info
            for index, info in metadata.storage_data.items()
        }
        return {
            name: _tensor(where, name, entry, places)
            for name, entry in sorted(metadata.state_dict_metadata.items())
            if hasattr(entry, "chunks")
        }
    except (AttributeError, TypeError, KeyError) as error:
        raise CheckpointError(
            "unreadable_weights", f"{where} is no metadata of a distributed checkpoint: {error!r}; save it again"
        ) from error


def read_tensor(folder: Folder, tensor: SavedTensor) -> torch.Tensor:
    """One tensor, put together on the CPU. Raises CheckpointError when its bytes are not what the metadata says."""
    import torch

    whole = torch.empty(tensor.shape, dtype=getattr(torch, tensor.dtype))
    for chunk in tensor.chunks:
        where = f"{folder.uri}/{chunk.path}, tensor {tensor.name!r}"
        data = folder.read(chunk.path, chunk.offset, chunk.offset + chunk.length)
        try:
            part = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        except Exception as error:  # torch.load raises whatever its parsers meet
            raise CheckpointError(
                "unreadable_weights",
                f"{where}: the {chunk.length} bytes at {chunk.offset} are no tensor: {error}; upload the file again",
            ) from error
        found = (tuple(part.shape), part.dtype) if isinstance(part, torch.Tensor) else type(part).__name__
        if found != (chunk.shape, whole.dtype):
            raise CheckpointError(
                "shape_mismatch",
                f"{where}: {found} lies there, and {(chunk.shape, whole.dtype)} is expected; save it again",
            )
        whole[tuple(slice(b, b + n) for b, n in zip(chunk.begin, chunk.shape, strict=True))] = part
    return whole


class _Records(pickle.Unpickler):
    """An unpickler of the records above and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """The record of that name. Raises UnpicklingError for any other."""
        import torch

        if name in _RECORDS.get(module, ()) or (module == "torch" and isinstance(getattr(torch, name, 0), torch.dtype)):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it names {module}.{name}, which torch does not write there")


def _unpickled(where: str, data: bytes) -> Any:
    try:
        return _Records(io.BytesIO(data)).load()
    except Exception as error:  # a broken pickle raises anything
        raise CheckpointError(
            "unreadable_weights",
            f"{where} was not read: {error}. It should be the metadata of torch.distributed.checkpoint; save the "
            "checkpoint again, and ask where it comes from if it names code",
        ) from error


def _tensor(where: str, name: str, entry: Any, places: dict[Any, Any]) -> SavedTensor:
    shape = tuple(int(n) for n in entry.size)
    chunks = tuple(sorted(_chunks(where, name, entry, places), key=lambda chunk: chunk.begin))
    inside = all(
        len(c.begin) == len(c.shape) == len(shape)
        and all(b >= 0 and b + n <= m for b, n, m in zip(c.begin, c.shape, shape, strict=True))
        for c in chunks
    )
    if not inside or sum(_size(c.shape) for c in chunks) != _size(shape) or _overlap(chunks):
        raise CheckpointError(
            "shape_mismatch",
            f"{where}: the {len(chunks)} blocks of tensor {name!r} do not make up its shape {list(shape)}; a "
            "rank's file belongs to another save, or was never written: save the checkpoint again",
        )
    return SavedTensor(name=name, shape=shape, dtype=str(entry.properties.dtype).removeprefix("torch."), chunks=chunks)


def _chunks(where: str, name: str, entry: Any, places: dict[Any, Any]) -> Iterator[Chunk]:
    for chunk in entry.chunks:
        begin = tuple(int(n) for n in chunk.offsets)
        place = places.get((name, begin))
        if place is None:
            raise CheckpointError(
                "missing_weights",
                f"{where} does not say where block {list(begin)} of tensor {name!r} lies; save it again",
            )
        path = str(place.relative_path)
        if "/" in path or path.startswith("."):
            raise CheckpointError("unreadable_weights", f"{where}: {path!r} is no file of the checkpoint's folder")
        if getattr(place, "transform_descriptors", None):
            raise CheckpointError(
                "unreadable_weights",
                f"{where}: tensor {name!r} is stored transformed ({list(place.transform_descriptors)}); save the "
                "checkpoint without stream transforms",
            )
        yield Chunk(
            begin=begin,
            shape=tuple(int(n) for n in chunk.sizes),
            path=path,
            offset=int(place.offset),
            length=int(place.length),
        )


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for n in shape:
        size *= n
    return size


def _overlap(chunks: tuple[Chunk, ...]) -> bool:
    """Whether two blocks have an element in common; blocks are few: one for each rank."""
    return any(
        all(max(x, y) < min(x + m, y + n) for x, m, y, n in zip(a.begin, a.shape, b.begin, b.shape, strict=True))
        for k, a in enumerate(chunks)
        for b in chunks[k + 1 :]
        if _size(a.shape) and _size(b.shape) and a.begin
    )
