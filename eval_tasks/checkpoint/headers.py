"""The first bytes of a safetensors file -> its tensors and the exact size the file must have. Reads no data.

Format: 8 bytes (little-endian n), n bytes of JSON {name: {dtype, shape, data_offsets: [begin, end)}}, then the data,
without holes or overlap: https://huggingface.co/docs/safetensors (section "Format").
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from eval_tasks.checkpoint.reasons import Problem

MAX_HEADER_BYTES = 100_000_000  # the limit of the format's own library

_DTYPE_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
    "I64": 64, "U64": 64, "F64": 64, "C64": 64,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """One tensor of a file; `begin` and `end` are offsets in bytes from the start of the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def header_bytes(prefix: bytes) -> int:
    """Length of the JSON header in bytes, from the first 8 bytes of the file."""
    return int.from_bytes(prefix[:8], "little")


def parse_header(where: str, data: bytes, file_size: int) -> tuple[Tensor, ...] | Problem:
    """The tensors in order of their bytes, or what is wrong. `data` is the 8 bytes and the header that follows them."""
    length = header_bytes(data)
    try:
        header = json.loads(data[8 : 8 + length])
    except (ValueError, RecursionError):
        return Problem(
            reason="bad_header", message=f"{where} has {length} bytes of header that are not JSON; save it again"
        )
    if not isinstance(header, dict):
        return _contradiction(where, f"the header is a {type(header).__name__}, not an object")
    tensors = []
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        tensor = _tensor(where, name, entry, 8 + length)
        if isinstance(tensor, Problem):
            return tensor
        tensors.append(tensor)
    tensors.sort(key=lambda tensor: (tensor.begin, tensor.end, tensor.name))
    return _check_extent(where, tensors, 8 + length, file_size) or tuple(tensors)


def _check_extent(where: str, tensors: list[Tensor], start: int, file_size: int) -> Problem | None:
    expected = start
    for tensor in tensors:
        if tensor.begin != expected:
            return _contradiction(
                where, f"tensor {tensor.name!r} begins at byte {tensor.begin}, and {expected} is expected"
            )
        expected = tensor.end
    if not tensors:
        return _contradiction(where, "it holds no tensor")
    if file_size < expected:
        return Problem(
            reason="truncated",
            message=f"{where} has {file_size} bytes and its header says {expected}: {expected - file_size} are "
            "missing; wait for the upload to end, or upload it again",
        )
    if file_size > expected:
        return Problem(
            reason="over_long",
            message=f"{where} has {file_size} bytes and its header says {expected}: {file_size - expected} too many; "
            "two files were written into one, upload it again",
        )
    return None


def _tensor(where: str, name: str, entry: object, start: int) -> Tensor | Problem:
    try:
        dtype, shape, (begin, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]  # type: ignore[index]
    except (KeyError, TypeError, ValueError):
        return _contradiction(where, f"tensor {name!r} lacks dtype, shape or data_offsets")
    if not isinstance(dtype, str) or dtype not in _DTYPE_BITS:
        return _contradiction(where, f"tensor {name!r} has the unknown dtype {dtype!r}")
    if not all(type(number) is int and number >= 0 for number in (*shape, begin, end)):
        return _contradiction(where, f"tensor {name!r} has a shape or offsets that are not whole numbers")
    if (end - begin) * 8 != math.prod(shape) * _DTYPE_BITS[dtype]:
        return _contradiction(
            where, f"tensor {name!r} ({dtype}, shape {list(shape)}) has {end - begin} bytes, which does not fit"
        )
    return Tensor(name=name, dtype=dtype, shape=shape, begin=start + begin, end=start + end)


def _contradiction(where: str, what: str) -> Problem:
    return Problem(reason="bad_header", message=f"{where}: {what}; save the checkpoint again")
