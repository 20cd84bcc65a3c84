"""A URI -> its files and their bytes, over fsspec. The one place of this package that talks to storage.

Whatever a file system raises leaves here as CheckpointGoneError (it is not there any more) or InfraError (try again).
Knows nothing of checkpoints.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

from eval_tasks.digests import Readable
from eval_tasks.errors import CheckpointGoneError, InfraError, UserError, is_of_storage_driver

_VERSION_KEYS = ("ETag", "etag", "md5Hash", "content_md5", "generation", "VersionId")
_TIME_KEYS = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """One file as a listing shows it. `version` is its etag or modification time; `modified` in seconds, if known."""

    path: str
    size: int
    version: str
    modified: float | None = None


@contextmanager
def storage_errors(what: str) -> Iterator[None]:
    """Map a file system's exceptions, with `what` was being read in the message."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CheckpointGoneError(f"{what} is not there any more: {error}") from error
    except OSError as error:
        raise InfraError(f"{what} could not be read: {error}; it is tried again") from error
    except Exception as error:
        if is_of_storage_driver(error):
            raise InfraError(f"{what} could not be read: {error}; it is tried again") from error
        raise


class Tap:
    """The stream of the file `what`: shows each chunk it hands out to a function, and may end after `limit` bytes."""

    def __init__(self, what: str, stream: Readable, show: Callable[[bytes], object], limit: int | None = None) -> None:
        self._what, self._stream, self._show, self._left = what, stream, show, limit

    def read(self, size: int, /) -> bytes:
        """The next chunk, of at most `size` bytes."""
        with storage_errors(self._what):
            chunk = self._stream.read(size if self._left is None else min(size, self._left))
        if self._left is not None:
            self._left -= len(chunk)
        self._show(chunk)
        return chunk


class Folder:
    """A directory at an fsspec URI. Reads are by path relative to it."""

    def __init__(self, uri: str) -> None:
        self.uri = uri.rstrip("/") or uri
        try:
            fs, root = fsspec.core.url_to_fs(self.uri)
        except (ValueError, ImportError) as error:
            raise UserError(f"{uri} cannot be opened: {error}; check the URI, and install its fsspec driver") from error
        self._fs: Any = fs
        self._root = str(root).rstrip("/")

    @property
    def local(self) -> Path | None:
        """The folder itself when it lies in the local file system."""
        return Path(self._root) if isinstance(self._fs, LocalFileSystem) else None

    def files(self) -> dict[str, StoredFile]:
        """The files directly in the folder, by name. Raises CheckpointGoneError when there is no such folder."""
        local = self.local
        with storage_errors(self.uri):
            if local is not None:
                return _scan(local)
            self._fs.invalidate_cache(self._root)
            entries = self._fs.ls(self._root, detail=True)
        found = (_entry(str(info["name"]), info) for info in entries if info.get("type") == "file")
        return {file.path: file for file in sorted(found, key=lambda file: file.path)}

    def subfolders(self) -> dict[str, tuple[str, dict[str, StoredFile]]]:
        """Name -> (URI, files directly in it) of each folder in this one; an absent folder has none.

        A local symbolic link to a folder inside this one is only another name for it and is left out; one that leads
        elsewhere has the URI of the place it leads to. What vanishes meanwhile is left out.
        """
        local = self.local
        if local is not None:
            with storage_errors(self.uri):
                return dict(_local_subfolders(local)) if local.is_dir() else {}
        with storage_errors(self.uri):
            self._fs.invalidate_cache(self._root)
            infos = self._fs.find(self._root, detail=True)
        folders: dict[str, tuple[str, dict[str, StoredFile]]] = {}
        for name in sorted(infos):
            parts = name.removeprefix(self._root).strip("/").split("/")
            if len(parts) >= 2:
                _, files = folders.setdefault(parts[0], (f"{self.uri}/{parts[0]}", {}))
                if len(parts) == 2:
                    files[parts[1]] = _entry(parts[1], infos[name])
        return folders

    def tree(self) -> dict[str, StoredFile]:
        """Every file below the folder by its path relative to it, sorted. Raises CheckpointGoneError for no folder."""
        with storage_errors(self.uri):
            if self.local is not None and not self.local.is_dir():
                raise FileNotFoundError(self.uri)
            self._fs.invalidate_cache(self._root)
            infos = self._fs.find(self._root, detail=True)
        found = {name.removeprefix(self._root).strip("/"): info for name, info in infos.items()}
        return {path: replace(_entry(path, info), path=path) for path, info in sorted(found.items())}

    def file(self, path: str) -> StoredFile:
        """One file as it lies there now. Raises CheckpointGoneError when it does not."""
        with storage_errors(f"{self.uri}/{path}"):
            self._fs.invalidate_cache(self._root)
            info = self._fs.info(f"{self._root}/{path}")
        return replace(_entry(path, info), path=path)

    def read(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        """The bytes of a file in [start, end)."""
        with storage_errors(f"{self.uri}/{path}"):
            data: bytes = self._fs.cat_file(f"{self._root}/{path}", start=start, end=end)
        return data

    @contextmanager
    def open(self, path: str) -> Iterator[IO[bytes]]:
        """A file as a binary stream."""
        with storage_errors(f"{self.uri}/{path}"), self._fs.open(f"{self._root}/{path}", "rb") as stream:
            yield stream


def _scan(folder: Path) -> dict[str, StoredFile]:
    files = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                # A snapshot of the Hugging Face cache holds links to blobs: a file is what its link leads to.
                if entry.is_file():
                    info = entry.stat()
                    files[entry.name] = StoredFile(
                        path=entry.name, size=info.st_size, version=str(info.st_mtime_ns), modified=info.st_mtime
                    )
            except FileNotFoundError:
                continue
    return dict(sorted(files.items()))


def _local_subfolders(root: Path) -> Iterator[tuple[str, tuple[str, dict[str, StoredFile]]]]:
    inside = root.resolve()
    with os.scandir(root) as entries:
        names = sorted(entry.name for entry in entries)
    for name in names:
        folder = root / name
        try:
            if not folder.is_dir():
                continue
            if folder.is_symlink():
                folder = folder.resolve(strict=True)
                if folder.is_relative_to(inside):
                    continue
            yield name, (str(folder), _scan(folder))
        except (FileNotFoundError, NotADirectoryError):
            continue


def _entry(name: str, info: dict[str, Any]) -> StoredFile:
    stamp = next((info[key] for key in _TIME_KEYS if info.get(key) is not None), None)
    version = next((str(info[key]) for key in _VERSION_KEYS if info.get(key)), "" if stamp is None else str(stamp))
    return StoredFile(
        path=name.rsplit("/", 1)[-1],
        size=int(info.get("size") or 0),
        version=version,
        modified=_seconds(stamp),
    )


def _seconds(stamp: object) -> float | None:
    if isinstance(stamp, datetime):
        return stamp.timestamp()
    if isinstance(stamp, int | float):
        return float(stamp)
    if isinstance(stamp, str):
        try:
            return datetime.fromisoformat(stamp).timestamp()
        except ValueError:
            return None
    return None
