"""Raw replies of endpoints in, one file per question, and back. The first one that is kept stays.

They are kept as they arrive, so that a question whose reply is here is never asked again, and for good: nobody can ask
for the same reply twice.
"""

from __future__ import annotations

import json
from typing import Any

from eval_tasks.digests import digest_parts, short_id
from eval_tasks.errors import DataError
from eval_tasks.store.files import FileStore
from eval_tasks.store.text import storable_value


class Replies:
    """What endpoints sent back, under ``replies/<run_id>/``."""

    def __init__(self, files: FileStore) -> None:
        self._files = files

    def keep(self, run_id: str, item_id: str, reply: dict[str, Any]) -> dict[str, Any]:
        """Keep the reply to an item's question, unless there is one; gives the one that stands."""
        text = json.dumps(storable_value({"item_id": item_id, **reply}), ensure_ascii=False, sort_keys=True)
        if not self._files.write_first(_name(run_id, item_id), text.encode()):
            kept = self.kept(run_id, item_id)
            if kept is not None:
                return kept
        document: dict[str, Any] = json.loads(text)
        return document

    def kept(self, run_id: str, item_id: str) -> dict[str, Any] | None:
        """The reply to an item's question, None when there is none. Raises DataError for a file that is damaged."""
        name = _name(run_id, item_id)
        try:
            document: dict[str, Any] = json.loads(self._files.read(name))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise DataError(f"{self._files.uri(name)} is damaged: {error}") from error
        return document


def _name(run_id: str, item_id: str) -> str:
    return f"replies/{run_id}/{short_id(digest_parts([item_id]))}.json"
