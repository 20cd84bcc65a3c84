"""Files of the store -> those that nothing names any more, with their age. Removes one when told to.

Named is what a manifest, an entry of scores, the catalog, or a blob that is itself named says: for blobs, every text of
64 hexadecimal digits anywhere in them counts, so that a record that is added later needs no word here. An open run's
files are its queue's; what lies in other folders (replies, lists of the hub's files, scans) is kept for good.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, String, select

from eval_tasks.store.blobs import Blobs
from eval_tasks.store.database import Database
from eval_tasks.store.files import FileStore
from eval_tasks.store.tables import metadata

_DIGEST = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")

# Blobs name each other, but are read apart; replies are very many, and name none.
_NAME_NO_BLOBS = frozenset({"responses", "scores", "blobs", "replies"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """A file that nothing names. `modified`: seconds since 1970; None where storage does not tell."""

    name: str
    size: int
    modified: float | None


class Upkeep:
    """Looks through the whole store; some minutes where there are many runs."""

    def __init__(self, files: FileStore, database: Database, blobs: Blobs) -> None:
        self._files = files
        self._database = database
        self._blobs = blobs

    def orphans(self) -> list[Orphan]:
        """Every orphan, by name."""
        # Listed first: what is named in the meantime is found named.
        listed = [found for folder in ("responses", "scores", "blobs") for found in self._files.walk(folder)]
        named = self._named()
        return [
            Orphan(name=name, size=size, modified=modified)
            for name, size, modified in sorted(listed)
            if self._is_orphan(name, named)
        ]

    def remove(self, orphan: Orphan) -> None:
        """Remove its file."""
        self._files.remove(orphan.name)

    def _is_orphan(self, name: str, named: set[str]) -> bool:
        if name in named:
            return False
        top, _, rest = name.partition("/")
        if top == "responses":
            return self._files.exists(f"responses/{rest.partition('/')[0]}/manifest.json")
        return True

    def _named(self) -> set[str]:
        """Names of files that something names."""
        return {*self._named_by_manifests("responses"), *self._named_by_manifests("scores"), *self._named_blobs()}

    def _named_by_manifests(self, folder: str) -> Iterator[str]:
        """The JSON files under a folder, and what they name."""
        for name, _, _ in self._files.walk(folder):
            if not name.endswith(".json"):
                continue
            yield name
            document = json.loads(self._files.read(name))
            for entry in document.get("files", [document]):
                yield entry["name"]

    def _named_blobs(self) -> Iterator[str]:
        """Blobs that the catalog or a JSON file of any other folder names, and those that such blobs name in turn."""
        waiting = self._database.read(_digests_of_catalog)
        for name, _, _ in self._files.walk(""):
            if name.partition("/")[0] not in _NAME_NO_BLOBS and name.endswith(".json"):
                waiting |= _digests(self._files.read(name))
        seen: set[str] = set()
        present = {name for name, _, _ in self._files.walk("blobs")}
        while waiting:
            digest = waiting.pop()
            name = f"blobs/{digest[:2]}/{digest[2:]}"
            if digest in seen or name not in present:
                continue
            seen.add(digest)
            yield name
            if self._begins_as_json(name):
                waiting |= _digests(self._files.read(name)) - seen

    def _begins_as_json(self, name: str) -> bool:
        with self._files.open(name) as handle:
            return handle.read(1) in (b"{", b"[")


def _digests(data: bytes) -> set[str]:
    return {found.decode("ascii") for found in _DIGEST.findall(data)}


def _digests_of_catalog(connection: Connection) -> set[str]:
    """Whatever looks like a digest in any text of any table."""
    found: set[str] = set()
    for table in metadata.sorted_tables:
        columns = [column for column in table.columns if isinstance(column.type, String)]
        if not columns:
            continue
        for row in connection.execute(select(*columns)):
            for value in row:
                if value:
                    found |= _digests(value.encode("utf-8", "replace"))
    return found
