"""A manifest's entry in, the Parquet file that it names out, checked to be the one that was written."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from eval_tasks.digests import digest_stream
from eval_tasks.errors import DataError
from eval_tasks.store.files import Draft, FileStore
from eval_tasks.store.parquet import opened


class NamedFiles:
    """Files by entries (`name`, `size`, `blake3`).

    On a disk of ours the whole file is read and hashed before its first use: page checksums leave headers and the
    footer open, and about one flipped bit in forty went unnoticed with them alone. An object store keeps checksums of
    what it holds; there, size and page checksums must do, or every pod would download whole runs for one column.
    """

    def __init__(self, files: FileStore) -> None:
        self._files = files
        self._verified: set[tuple[str, int]] = set()

    @staticmethod
    def entry(name: str, draft: Draft) -> dict[str, Any]:
        """What a manifest must say of a published draft."""
        return {"name": name, "size": draft.size, "blake3": draft.digest}

    def open(self, entry: dict[str, Any]) -> AbstractContextManager[Any]:
        """An open ParquetFile. Raises DataError when the file is absent, cut or damaged."""
        name = entry["name"]
        uri = self._files.uri(name)
        try:
            size = self._files.size(name)
            if size != entry["size"]:
                raise DataError(f"{uri} is damaged: it has {size} bytes, its manifest says {entry['size']}")
            if self._files.is_local:
                self._verify(entry)
            return opened(self._files.open(name), uri)
        except FileNotFoundError as error:
            raise DataError(f"{uri} is gone, though its manifest names it") from error

    def _verify(self, entry: dict[str, Any]) -> None:
        key = (entry["name"], self._files.modified_ns(entry["name"]))
        if key in self._verified:
            return
        with self._files.open(entry["name"]) as handle:
            digest, _ = digest_stream(handle)
        if digest != entry["blake3"]:
            raise DataError(
                f"{self._files.uri(entry['name'])} is damaged: its blake3 is {digest}, its manifest says "
                f"{entry['blake3']}"
            )
        self._verified.add(key)
