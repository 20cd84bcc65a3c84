"""Checkpoint record -> a local folder whose bytes were verified against it.

A local checkpoint is used where it lies; a remote one is copied into `cache_dir/<checkpoint_id>`, which appears in one
step when every file in it is right. The cache is keyed by content, never by path.
"""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from eval_tasks.checkpoint.storage import Folder, Tap
from eval_tasks.digests import digest_stream
from eval_tasks.errors import CheckpointGoneError, DriftError, InfraError
from eval_tasks.records import Checkpoint, CheckpointFile


def fetch(checkpoint: Checkpoint, cache_dir: Path) -> Path:
    """A local folder with the checkpoint's verified files. Pods on one disk may fetch the same one at the same time.

    Raises CheckpointGoneError when files were removed, DriftError when one changed, InfraError when storage or the
    cache's disk fails (nothing half copied stays).
    """
    folder = Folder(checkpoint.uri)
    if folder.local is not None:
        for file in checkpoint.files:
            _verify(folder, file, checkpoint)
        return folder.local
    target = cache_dir / checkpoint.checkpoint_id
    if target.is_dir():
        try:
            for file in checkpoint.files:
                _verify(Folder(str(target)), file, checkpoint)
        except (DriftError, CheckpointGoneError):
            _discard(target)
        else:
            return target
    return _copy(folder, checkpoint, target)


def _copy(folder: Folder, checkpoint: Checkpoint, target: Path) -> Path:
    with _cache_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{checkpoint.checkpoint_id[:12]}-", dir=target.parent))
    try:
        for file in checkpoint.files:
            with folder.open(file.path) as source:
                found = _copy_stream(f"{folder.uri}/{file.path}", source, part / file.path)
            _expect(file, found, f"{folder.uri}/{file.path}", checkpoint)
        return _put_in_place(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _copy_stream(what: str, source: IO[bytes], target: Path) -> tuple[str, int]:
    with _cache_errors(target), target.open("wb") as copy:
        # The source's failures are mapped where it is read: what else fails here is the cache's disk.
        return digest_stream(Tap(what, source, copy.write))


@contextmanager
def _cache_errors(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InfraError(f"cannot write the checkpoint's copy {target}: {error}; free or enlarge that disk") from error


def _put_in_place(part: Path, target: Path) -> Path:
    with _cache_errors(target):
        part.chmod(0o755)
        try:
            part.rename(target)
        except OSError as error:
            # Another pod put the same content there first; its bytes were verified as ours were.
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
    return target


def _discard(target: Path) -> None:
    """Take a damaged copy out of the way in one step, so that no other pod meets half of it."""
    with _cache_errors(target):
        grave = Path(tempfile.mkdtemp(prefix=".damaged-", dir=target.parent))
        try:
            target.rename(grave / target.name)
        except FileNotFoundError:
            pass
        finally:
            shutil.rmtree(grave, ignore_errors=True)


def _verify(folder: Folder, file: CheckpointFile, checkpoint: Checkpoint) -> None:
    with folder.open(file.path) as stream:
        found = digest_stream(stream)
    _expect(file, found, f"{folder.uri}/{file.path}", checkpoint)


def _expect(file: CheckpointFile, found: tuple[str, int], where: str, checkpoint: Checkpoint) -> None:
    digest, size = found
    if (digest, size) != (file.blake3, file.size):
        raise DriftError(
            f"{where} is not the file of checkpoint {checkpoint.checkpoint_id[:12]} any more: {size} bytes with blake3 "
            f"{digest[:12]}, and {file.size} bytes with {file.blake3[:12]} were registered; it was overwritten, "
            "and what lies there now is another checkpoint: evaluate that one, or restore the files"
        )
