"""Values and bytes in, blake3 digests out. The one place that hashes.

A digest of a value is blake3 over its RFC 8785 canonical JSON, so that key order, white space and number format
cannot matter. Digests are 64 lower-case hex characters; `short_id` gives the 32 that fit a Kubernetes label.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import rfc8785
from blake3 import blake3

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]

_CHUNK_BYTES = 8 * 1024 * 1024


class Readable(Protocol):
    """Anything with a file's `read`."""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end."""
        ...


def digest_bytes(data: bytes | memoryview) -> str:
    """blake3 of `data` as 64 hex characters."""
    return blake3(data).hexdigest()


def digest_value(value: object) -> str:
    """blake3 of the RFC 8785 canonical JSON of `value` (dict, list, str, finite number, bool or None).

    Raises ValueError for NaN, infinities and integers beyond 2**53, which JSON cannot carry exactly.
    """
    return digest_bytes(canonical_json(value))


def canonical_json(value: object) -> bytes:
    """RFC 8785 canonical JSON of `value`, UTF-8."""
    try:
        return rfc8785.dumps(value)  # type: ignore[arg-type]
    except rfc8785.CanonicalizationError as error:
        raise ValueError(f"not a JSON value: {error}") from error


def digest_stream(stream: Readable) -> tuple[str, int]:
    """(blake3, size in bytes) of everything left in a binary stream, read in chunks."""
    hasher = blake3()
    size = 0
    while chunk := stream.read(_CHUNK_BYTES):
        hasher.update(chunk)
        size += len(chunk)
    return hasher.hexdigest(), size


def digest_parts(parts: Iterable[str]) -> str:
    """blake3 over a sequence of digests or names, order kept; parts cannot run into each other."""
    return digest_value(list(parts))


def short_id(digest: str) -> str:
    """The first 32 hex characters (128 bits) of a digest: an id that fits a Kubernetes label value."""
    return digest[:32]
