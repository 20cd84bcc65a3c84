"""A data set of the Hugging Face hub at a pinned revision -> local files of one split.

Offline unless HF_OFFLINE=0: a run never depends on the network by accident. Only data files are fetched; a data set
that exists as a loading script alone is refused, since that would run foreign code.
"""

from __future__ import annotations

from pathlib import Path

from eval_tasks.errors import InfraError, UserError
from eval_tasks.registry import SourceSpec
from eval_tasks.settings import Settings

_ENDINGS = ("parquet", "jsonl", "jsonl.gz")


def hub_files(source: SourceSpec, offline: bool | None = None) -> list[tuple[str, Path]]:
    """(path in the repository, local file) of the split's data files, by path.

    Raises UserError when offline and not in the cache, or when the repository has no data file for the split;
    InfraError when the hub cannot be reached.
    """
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError

    offline = Settings().hf_offline if offline is None else offline
    patterns = _patterns(source)
    what = f"{source.hub} at revision {source.revision}"
    try:
        folder = Path(
            huggingface_hub.snapshot_download(
                str(source.hub),
                repo_type="dataset",
                revision=source.revision,
                allow_patterns=patterns,
                local_files_only=offline,
            )
        )
    except LocalEntryNotFoundError as error:
        way_out = "set HF_OFFLINE=0 to let it be downloaded once" if offline else "check the network"
        raise UserError(f"{what} is not in the local Hugging Face cache; {way_out}") from error
    except RepositoryNotFoundError as error:
        raise UserError(f"the hub has no data set {what}, or this account may not read it") from error
    except (HfHubHTTPError, OSError) as error:
        raise InfraError(f"cannot fetch {what} from the hub: {error}") from error
    for pattern in patterns:
        if found := sorted((path.relative_to(folder).as_posix(), path) for path in folder.glob(pattern)):
            return found
    raise UserError(
        f"{what} has no data file for split {source.split!r}"
        + (f" of config {source.config!r}" if source.config else "")
        + f"; looked for {', '.join(patterns[:4])} ...; check 'config' and 'split', or pin its parquet branch"
    )


def _patterns(source: SourceSpec) -> list[str]:
    """Where a split's files lie by the hub's conventions, the first that matches is taken."""
    folders = [f"{source.config}/"] if source.config else ["data/", "default/", ""]
    split = source.split
    return [
        f"{folder}{name}.{ending}"
        for ending in _ENDINGS
        for folder in folders
        for name in (f"{split}-*", f"{split}", f"{split}/*")
    ]
