"""What the shards of contamination scans found, one small file per shard, written last. Knows no corpus.

A shard's file names the blobs of its hits: where it is, the shard is done. The same shard again gives the same file.
"""

from __future__ import annotations

import json

from eval_tasks.errors import DataError
from eval_tasks.records import ShardHits, from_json, to_json
from eval_tasks.store.files import FileStore


class Scans:
    """Hits of scans, under ``scans/<scan_id>/``."""

    def __init__(self, files: FileStore) -> None:
        self._files = files

    def put(self, hits: ShardHits) -> None:
        """Keep what a shard found, in place of an earlier try."""
        text = json.dumps(to_json(hits), ensure_ascii=False, sort_keys=True)
        self._files.write(_name(hits.scan_id, hits.shard), text.encode())

    def get(self, scan_id: str, shard: int) -> ShardHits | None:
        """What a shard found, None when it is not done. Raises DataError for a file that is damaged."""
        name = _name(scan_id, shard)
        try:
            return from_json(ShardHits, json.loads(self._files.read(name)))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise DataError(
                f"{self._files.uri(name)} is damaged: {error}; remove it and scan the shard anew"
            ) from error

    def done(self, scan_id: str) -> set[int]:
        """The shards that are done; none of them is read."""
        names = (name.rsplit("/", 1)[-1] for name in self._files.names(f"scans/{scan_id}"))
        return {int(name.removesuffix(".json")) for name in names if name.removesuffix(".json").isdecimal()}


def _name(scan_id: str, shard: int) -> str:
    return f"scans/{scan_id}/{shard:06d}.json"
