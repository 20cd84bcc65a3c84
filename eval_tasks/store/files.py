"""Names and bytes in, bytes out, under one fsspec URI. Knows nothing of what the bytes mean.

A name appears with all its bytes or not at all. A local file is written beside its place, flushed to disk and renamed;
an object store's put is already all or nothing. Whatever a storage library raises becomes an InfraError that names the
place, except FileNotFoundError, whose meaning only the caller knows.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import fsspec.core

from eval_tasks.digests import digest_stream
from eval_tasks.errors import EvalError, InfraError, UserError, is_of_storage_driver


@dataclass(slots=True)
class Draft:
    """A file being written to `handle`; `digest` (blake3) and `size` are known once it has been published."""

    handle: IO[bytes]
    digest: str = ""
    size: int = 0


class FileStore:
    """Files under `uri`: a local path, file://, memory://, s3:// or whatever else fsspec has a client for."""

    def __init__(self, uri: str) -> None:
        self.root_uri = uri.rstrip("/")
        # Other pods write here too: a cached listing would hide their files.
        options = {} if uri.startswith("memory:") else {"use_listings_cache": False}
        try:
            self._fs, root = fsspec.core.url_to_fs(uri, **options)
        except (ImportError, ValueError) as error:
            raise UserError(
                f"store {uri}: no client for it is installed, or it is no URI of storage: {error}"
            ) from error
        self._root = str(root).rstrip("/")
        protocol = self._fs.protocol
        self.is_local = "file" in ((protocol,) if isinstance(protocol, str) else protocol)

    def uri(self, name: str) -> str:
        """The place of `name`, whether or not it exists."""
        return f"{self.root_uri}/{name}"

    def read(self, name: str) -> bytes:
        """All bytes of `name`. Raises FileNotFoundError."""
        with _storage_errors("read", self.uri(name)):
            data: bytes = self._fs.cat_file(self._path(name))
        return data

    def open(self, name: str) -> IO[bytes]:
        """`name` for reading at any offset. Raises FileNotFoundError."""
        with _storage_errors("open", self.uri(name)):
            handle: IO[bytes] = self._fs.open(self._path(name), "rb")
        return handle

    def exists(self, name: str) -> bool:
        """Whether a file of that name is there."""
        with _storage_errors("look for", self.uri(name)):
            return bool(self._fs.isfile(self._path(name)))

    def size(self, name: str) -> int:
        """Size in bytes. Raises FileNotFoundError."""
        with _storage_errors("look at", self.uri(name)):
            return int(self._fs.size(self._path(name)))

    def modified_ns(self, name: str) -> int:
        """When a local file was last changed, in nanoseconds since 1970. Raises FileNotFoundError."""
        with _storage_errors("look at", self.uri(name)):
            return Path(self._path(name)).stat().st_mtime_ns

    def names(self, folder: str) -> list[str]:
        """Names of the files directly in `folder`, sorted; an absent folder is empty."""
        try:
            with _storage_errors("list", self.uri(folder)):
                entries: list[dict[str, Any]] = self._fs.ls(self._path(folder), detail=True)
        except FileNotFoundError:
            return []
        found = (str(entry["name"]).rsplit("/", 1)[-1] for entry in entries if entry["type"] == "file")
        return sorted(f"{folder}/{name}" for name in found)

    def walk(self, folder: str) -> list[tuple[str, int, float | None]]:
        """(name, size, seconds since 1970 of its last change) of every file under `folder`; an absent one is empty.

        The time is None where storage does not tell it.
        """
        try:
            with _storage_errors("list", self.uri(folder)):
                found: dict[str, dict[str, Any]] = self._fs.find(self._path(folder), detail=True)
        except FileNotFoundError:
            return []
        start = len(f"{self._root}/")
        return [(path[start:], int(info.get("size") or 0), _modified(info)) for path, info in sorted(found.items())]

    def write(self, name: str, data: bytes) -> None:
        """`data` under `name`, replacing what was there."""
        with self.draft(name) as draft:
            draft.handle.write(data)

    def write_first(self, name: str, data: bytes) -> bool:
        """`data` under `name` unless something is there; whether it was written. Of writers at once one is the first.

        Storage without a conditional write, which is neither local, S3 nor GCS, keeps the last of writers at once.
        """
        with _storage_errors("write", self.uri(name)):
            try:
                if self.is_local:
                    _link_whole(Path(self._path(name)), data)
                else:
                    self._fs.pipe_file(self._path(name), data, mode="create")
            except FileExistsError:
                return False
        return True

    def remove(self, name: str) -> None:
        """Remove `name`; one that is not there is no error."""
        with suppress(FileNotFoundError), _storage_errors("remove", self.uri(name)):
            self._fs.rm_file(self._path(name))

    @contextmanager
    def draft(self, name: str) -> Iterator[Draft]:
        """A Draft to write to; it becomes `name` when the block ends well, and leaves nothing when it does not."""
        with _storage_errors("write", self.uri(name)):
            if self.is_local:
                yield from self._local_draft(Path(self._path(name)))
            else:
                yield from self._remote_draft(self._path(name))

    def _local_draft(self, path: Path) -> Iterator[Draft]:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name[:80]}.{uuid.uuid4().hex}.tmp")
        try:
            with temporary.open("w+b") as handle:
                draft = Draft(handle)
                yield draft
                handle.flush()
                os.fsync(handle.fileno())
                handle.seek(0)
                draft.digest, draft.size = digest_stream(handle)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)

    def _remote_draft(self, path: str) -> Iterator[Draft]:
        with tempfile.NamedTemporaryFile() as handle:
            draft = Draft(handle)
            yield draft
            handle.flush()
            handle.seek(0)
            draft.digest, draft.size = digest_stream(handle)
            self._fs.put_file(handle.name, path)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"


def _link_whole(path: Path, data: bytes) -> None:
    """A file that is there with all its bytes or not at all. Raises FileExistsError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name[:80]}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _modified(info: dict[str, Any]) -> float | None:
    """When a file was last changed, in the words of the storage client at hand."""
    for key in ("mtime", "LastModified", "last_modified", "updated", "created"):
        value = info.get(key)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, int | float):
            return float(value)
    return None


@contextmanager
def _storage_errors(action: str, uri: str) -> Iterator[None]:
    """Map what storage raises, its client libraries' own classes too."""
    try:
        yield
    except (FileNotFoundError, EvalError):
        raise
    except OSError as error:
        raise InfraError(f"cannot {action} {uri}: {error.strerror or error}") from error
    except Exception as error:
        if is_of_storage_driver(error):
            raise InfraError(f"cannot {action} {uri}: {error}") from error
        raise
