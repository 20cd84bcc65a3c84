"""What was seen in checkpoint storage, and what a checkpoint is."""

from __future__ import annotations

from dataclasses import dataclass

from eval_tasks.digests import digest_value, short_id


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFile:
    """One file of a checkpoint that can change a number. `path` is relative, `size` in bytes."""

    path: str
    size: int
    blake3: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint by content: `checkpoint_id` is the digest of its files, wherever they lie.

    `n_parameters`: numbers in the weights it is loaded from; None for one that was recorded before they were counted.
    """

    checkpoint_id: str
    training_run: str
    step: int
    uri: str
    files: tuple[CheckpointFile, ...]
    corpora: tuple[str, ...] = ()
    n_parameters: int | None = None

    @staticmethod
    def digest_of(files: tuple[CheckpointFile, ...]) -> str:
        """The checkpoint id of a set of files: digest of (path, size, blake3), by path."""
        return digest_value(sorted([f.path, f.size, f.blake3] for f in files))

    @property
    def n_bytes(self) -> int:
        """Total size of the files in bytes."""
        return sum(f.size for f in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """One version of one step's directory as its listing showed it; the ledger has each exactly once.

    `listing` holds (relative path, size in bytes, etag or modification time) of every file that can change a number,
    sorted by path: a log, a marker or an optimizer state beside them makes no new landing.
    """

    training_run: str
    step: int
    uri: str
    listing: tuple[tuple[str, int, str], ...]

    @property
    def landing_id(self) -> str:
        """Digest of the training run, step, place and listing: a changed listing is another landing."""
        return short_id(digest_value([self.training_run, self.step, self.uri, [list(entry) for entry in self.listing]]))
