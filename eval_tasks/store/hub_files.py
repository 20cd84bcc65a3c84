"""Files of pinned revisions of hub data sets, kept as blobs with a list of their digests. Knows no hub.

The list is written last, under ``hub/``: where it is, all its blobs are. Blobs are checked against their digests when
they are read.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from eval_tasks.digests import canonical_json, digest_value, short_id
from eval_tasks.errors import DataError
from eval_tasks.store.blobs import Blobs
from eval_tasks.store.files import FileStore


class HubFiles:
    """What was fetched, by (repository, revision, patterns that were asked for)."""

    def __init__(self, files: FileStore, blobs: Blobs) -> None:
        self._files = files
        self._blobs = blobs

    def get(self, repository: str, revision: str, patterns: Sequence[str]) -> list[tuple[str, bytes]] | None:
        """(path, bytes) in the order they were put; None when they never were.

        Raises DriftError or DataError when a blob or the list is not what was stored.
        """
        name = _name(repository, revision, patterns)
        try:
            listed: Any = json.loads(self._files.read(name))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise DataError(
                f"{self._files.uri(name)} is damaged: {error}; remove it to fetch the files anew"
            ) from error
        return [(path, self._blobs.get(digest)) for path, digest in listed["files"]]

    def put(self, repository: str, revision: str, patterns: Sequence[str], files: Sequence[tuple[str, bytes]]) -> None:
        """Keep (path, bytes); a damaged copy is replaced."""
        listed = [[path, self._blobs.put(data)] for path, data in files]
        content = {"repository": repository, "revision": revision, "patterns": list(patterns), "files": listed}
        self._files.write(_name(repository, revision, patterns), canonical_json(content))


def _name(repository: str, revision: str, patterns: Sequence[str]) -> str:
    return f"hub/{short_id(digest_value([repository, revision, list(patterns)]))}.json"
