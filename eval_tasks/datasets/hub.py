"""A data set of the Hugging Face hub at a pinned revision -> the bytes of its data files, by path.

What was fetched once is kept in the store and read from there, its digests checked, so that no other machine and no
later day needs the hub. Offline unless HF_OFFLINE=0: a run never depends on the network by accident. Only data files
are fetched; a data set that exists as a loading script alone is refused, since that would run foreign code.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eval_tasks.errors import DataError, InfraError, UserError
from eval_tasks.registry import SourceSpec
from eval_tasks.settings import Settings
from eval_tasks.store import HubFiles

_ENDINGS = ("parquet", "jsonl", "jsonl.gz")
_TOO_MANY_REQUESTS = 429


def hub_files(
    source: SourceSpec, kept: HubFiles | None = None, *, offline: bool | None = None
) -> list[tuple[str, bytes]]:
    """(path in the repository, its bytes) of the source's data files, by path. `kept` is asked first, and given them.

    Raises UserError when offline and not in any cache, when the repository is gated, private or absent, or when it has
    no such data file; InfraError when the hub cannot be reached or refuses for a while; DriftError when the store's
    copy was changed and the hub may not be asked for another.
    """
    offline = Settings().hf_offline if offline is None else offline
    patterns = _patterns(source)
    key = (str(source.hub), str(source.revision), patterns)
    try:
        known = kept.get(*key) if kept else None
    except DataError:
        if offline:
            raise
        known = None
    if known is not None:
        return known
    folder = _fetched(source, patterns, offline)
    files = [(path.relative_to(folder).as_posix(), path.read_bytes()) for path in _chosen(source, folder, patterns)]
    if kept:
        kept.put(*key, files)
    return files


def _fetched(source: SourceSpec, patterns: Sequence[str], offline: bool) -> Path:
    """The local folder that stands for the repository. HF_TOKEN and HF_HOME are honoured by the library."""
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    what = f"{source.hub} at revision {source.revision}"
    try:
        return Path(
            huggingface_hub.snapshot_download(
                str(source.hub),
                repo_type="dataset",
                revision=source.revision,
                allow_patterns=list(patterns),
                local_files_only=offline,
            )
        )
    except LocalEntryNotFoundError as error:
        if offline:
            raise UserError(
                f"{what} is neither in the store nor in the local Hugging Face cache; "
                "set HF_OFFLINE=0 to let it be downloaded once"
            ) from error
        raise _refusal(what, error.__cause__ or error) from error
    except (HfHubHTTPError, OSError) as error:
        raise _refusal(what, error) from error


def _refusal(what: str, error: BaseException) -> UserError | InfraError:
    """Why the hub gave nothing, and who must act."""
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    if isinstance(error, GatedRepoError):
        return UserError(
            f"{what} is gated: accept its terms on its page of the hub, and set HF_TOKEN to a token of that account"
        )
    if isinstance(error, RepositoryNotFoundError):
        return UserError(f"the hub has no data set {what}, or the account of HF_TOKEN may not read it")
    if isinstance(error, RevisionNotFoundError):
        return UserError(f"the hub has no {what}: pin the 40 characters of a commit that it has")
    response = getattr(error, "response", None)
    if getattr(response, "status_code", None) == _TOO_MANY_REQUESTS:
        wait = response.headers.get("retry-after") if response is not None else None
        return InfraError(
            f"the hub refuses {what} for a while: too many requests"
            + (f", try again in {wait} s" if wait else "")
            + "; with HF_TOKEN set the limit is higher"
        )
    return InfraError(f"cannot fetch {what} from the hub: {error}")


def _chosen(source: SourceSpec, folder: Path, patterns: Sequence[str]) -> list[Path]:
    """All files that were named; of a split, those of the first convention that the repository follows."""
    found = [sorted(folder.glob(pattern)) for pattern in patterns]
    what = f"{source.hub} at revision {source.revision}"
    if source.files:
        absent = [pattern for pattern, paths in zip(patterns, found, strict=True) if not paths]
        if absent:
            raise UserError(f"{what} has no file {absent[0]!r}; check source.files")
        return sorted({path for paths in found for path in paths})
    for paths in found:
        if paths:
            return paths
    raise UserError(
        f"{what} has no data file for split {source.split!r}"
        + (f" of config {source.config!r}" if source.config else "")
        + f"; looked for {', '.join(patterns[:4])} ...; check 'config' and 'split', name its 'files', or pin its "
        "parquet branch"
    )


def _patterns(source: SourceSpec) -> tuple[str, ...]:
    """The files that are named, else where a split's files lie by the hub's conventions."""
    if source.files:
        return tuple(source.files)
    folders = [f"{source.config}/"] if source.config else ["data/", "default/", ""]
    split = source.split
    return tuple(
        f"{folder}{name}.{ending}"
        for ending in _ENDINGS
        for folder in folders
        for name in (f"{split}-*", f"{split}", f"{split}/*")
    )
