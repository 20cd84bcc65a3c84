"""A complete folder -> Checkpoint: the files that can change a number, their sizes and blake3. The bytes are its name.

A trainer may write `checksums.blake3.json` beside the files, and spare the reading of those it names:
`{"model.safetensors": {"size": 123, "blake3": "<64 hex>"}, ...}`. It is believed for a file only if the size fits and
the checksums are not older than the file (an overwritten checkpoint has the same sizes); whoever evaluates the
checkpoint verifies the bytes all the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from eval_tasks.checkpoint.files import CHECKSUMS, INDEX, WEIGHTS, is_temporary, is_weights, moves_numbers
from eval_tasks.checkpoint.reasons import Problem
from eval_tasks.checkpoint.storage import Folder, StoredFile, Tap
from eval_tasks.checkpoint.validity import inspect_files
from eval_tasks.checkpoint.weights import read_json
from eval_tasks.digests import digest_stream
from eval_tasks.errors import CheckpointError, CheckpointGoneError, InfraError
from eval_tasks.records import Checkpoint, CheckpointFile

Progress = Callable[[int, int], None]

_BLAKE3 = re.compile(r"[0-9a-f]{64}")


def _no_progress(done: int, total: int) -> None:
    """Nobody watches."""


def build_manifest(
    uri: str,
    *,
    training_run: str,
    step: int,
    corpora: tuple[str, ...] = (),
    progress: Progress = _no_progress,
) -> Checkpoint:
    """The checkpoint at `uri` by content. `progress(bytes_done, bytes_total)` is called while files are read.

    Raises CheckpointError (with its reason) when it is not complete or valid, InfraError when storage fails.
    """
    try:
        folder = Folder(uri)
        files, n_parameters = _hash_files(folder, progress)
    except CheckpointGoneError as error:
        raise CheckpointError("gone", str(error)) from error
    return Checkpoint(
        checkpoint_id=Checkpoint.digest_of(files),
        training_run=training_run,
        step=step,
        uri=folder.uri,
        files=files,
        corpora=corpora,
        n_parameters=n_parameters,
    )


def _hash_files(folder: Folder, progress: Progress) -> tuple[tuple[CheckpointFile, ...], int]:
    """The files, and how many numbers their weights hold."""
    files = {name: file for name, file in folder.files().items() if not is_temporary(name)}
    weights = inspect_files(folder, files)
    if isinstance(weights, Problem):
        raise CheckpointError(weights.reason, weights.message)
    # Weights that the model is not loaded from (an adapter, a second layout) cannot change a number.
    used = {name for name in files if moves_numbers(name) and not is_weights(name)} | set(weights)
    if WEIGHTS not in weights:
        used.add(INDEX)
    claimed = _claimed_digests(folder, files)
    total, manifest = sum(files[name].size for name in used), list[CheckpointFile]()
    for name in sorted(used):
        done = sum(file.size for file in manifest)
        digest = claimed.get(name) or _read_digest(folder, files[name], done, total, progress)
        manifest.append(CheckpointFile(path=name, size=files[name].size, blake3=digest))
    progress(total, total)
    return tuple(manifest), sum(math.prod(tensor.shape) for tensors in weights.values() for tensor in tensors)


def _read_digest(folder: Folder, file: StoredFile, done: int, total: int, progress: Progress) -> str:
    def count(chunk: bytes) -> None:
        nonlocal done
        done += len(chunk)
        progress(done, total)

    with folder.open(file.path) as stream:
        digest, size = digest_stream(Tap(f"{folder.uri}/{file.path}", stream, count))
    if size != file.size:
        raise InfraError(
            f"{folder.uri}/{file.path} had {file.size} bytes in the listing and {size} when it was read: it is being "
            "written; it is tried again"
        )
    return digest


def _claimed_digests(folder: Folder, files: Mapping[str, StoredFile]) -> dict[str, str]:
    """What the trainer's checksums may be believed for. Raises CheckpointError when they contradict the files."""
    checksums = files.get(CHECKSUMS)
    if checksums is None:
        return {}
    claims = read_json(folder, checksums, torn="checksum_mismatch")
    if isinstance(claims, Problem):
        raise CheckpointError(claims.reason, claims.message)
    believed = {}
    for name in sorted(claims.keys() & files.keys()):
        claim, file = claims[name], files[name]
        if not isinstance(claim, dict) or not _BLAKE3.fullmatch(str(claim.get("blake3"))):
            raise CheckpointError(
                "checksum_mismatch",
                f"{folder.uri}/{CHECKSUMS}: {name!r} has {claim!r}, and "
                '{"size": bytes, "blake3": 64 hex characters} is expected; write it again or remove it',
            )
        if not _not_older(checksums, file):
            continue
        if claim.get("size") != file.size:
            raise CheckpointError(
                "checksum_mismatch",
                f"{folder.uri}/{name} has {file.size} bytes and {CHECKSUMS} says {claim.get('size')!r}; one of them is "
                "of another save: write the checksums again or remove them",
            )
        believed[name] = str(claim["blake3"])
    return believed


def _not_older(checksums: StoredFile, file: StoredFile) -> bool:
    return checksums.modified is not None and file.modified is not None and checksums.modified >= file.modified
