"""Where everything lies that outlives a process: catalog, blobs, responses, scores and the work queue.

Importing this loads no pyarrow: `blobs`, `responses`, `again` and `scores` do so when they are first used.
"""

from __future__ import annotations

from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING

from eval_tasks.errors import UserError
from eval_tasks.records import Plan, from_json
from eval_tasks.settings import Settings
from eval_tasks.store.blobs import Blobs
from eval_tasks.store.catalog import (
    Catalog,
    ContaminationCheck,
    Corpus,
    Delivery,
    Grader,
    LandingRow,
    ReportRow,
    SeriesPoint,
    ShardRow,
)
from eval_tasks.store.database import Database
from eval_tasks.store.files import FileStore
from eval_tasks.store.hub_files import HubFiles
from eval_tasks.store.queue import WorkQueue
from eval_tasks.store.replies import Replies
from eval_tasks.store.scans import Scans
from eval_tasks.store.schema import migrate, prepare
from eval_tasks.store.upkeep import Orphan, Upkeep

if TYPE_CHECKING:
    from eval_tasks.store.again import Again
    from eval_tasks.store.responses import Responses
    from eval_tasks.store.scores import Scores

__all__ = [
    "Catalog",
    "ContaminationCheck",
    "Corpus",
    "Delivery",
    "Grader",
    "HubFiles",
    "LandingRow",
    "Orphan",
    "ReportRow",
    "SeriesPoint",
    "ShardRow",
    "Store",
    "migrate",
    "open_store",
]


class Store:
    """An open store. Close it, or use it in a ``with`` block."""

    def __init__(self, files: FileStore, database: Database) -> None:
        self._files = files
        self._database = database
        self.catalog = Catalog(database)
        self.queue = WorkQueue(database)
        self.blobs = Blobs(files)
        self.hub_files = HubFiles(files, self.blobs)
        self.replies = Replies(files)
        self.scans = Scans(files)
        self.upkeep = Upkeep(files, database, self.blobs)

    @cached_property
    def responses(self) -> Responses:
        """What the engine produced."""
        from eval_tasks.store.responses import Responses

        return Responses(self._files)

    @cached_property
    def again(self) -> Again:
        """What was computed a second time, to be held against it."""
        from eval_tasks.store.again import Again

        return Again(self._files)

    @cached_property
    def scores(self) -> Scores:
        """What scorers and graders made of it."""
        from eval_tasks.store.scores import Scores

        return Scores(self._files)

    def plan(self, reference: str) -> Plan:
        """The plan that a blob digest, or a blob URI of this store, names. Raises UserError for no such plan."""
        digest = self.blobs.digest_of(reference)
        if not self.blobs.exists(digest):
            raise UserError(f"no plan {reference!r} in this store; `plan` prints the URI of the plan it makes")
        return from_json(Plan, self.blobs.get_json(digest))

    def close(self) -> None:
        """Close the catalog's connections."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def open_store(settings: Settings) -> Store:
    """The store that `settings` names; an embedded SQLite catalog is made, or migrated, on the way.

    Raises UserError when a PostgreSQL catalog must be migrated first, InfraError when storage cannot be reached.
    """
    database = Database(settings.catalog_url)
    try:
        prepare(database)
        return Store(FileStore(settings.store_uri), database)
    except BaseException:
        database.close()
        raise
