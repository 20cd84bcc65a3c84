"""Bytes in, their blake3 out, and back, verified: items, plans and reports by content. Knows no run and no catalog."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from eval_tasks.digests import canonical_json, digest_bytes
from eval_tasks.errors import DataError, DriftError
from eval_tasks.records import Item, PlannedBatch
from eval_tasks.store.files import FileStore
from eval_tasks.store.text import storable_value


class Blobs:
    """Content-addressed bytes under ``blobs/ab/cdef...``. The same bytes are stored once, and never change."""

    def __init__(self, files: FileStore) -> None:
        self._files = files

    def put(self, data: bytes) -> str:
        """Store `data`; gives its digest. A damaged copy that is already there is replaced."""
        digest = digest_bytes(data)
        name = _name(digest)
        try:
            intact = self._files.read(name) == data
        except FileNotFoundError:
            intact = False
        if not intact:
            self._files.write(name, data)
        return digest

    def get(self, digest: str) -> bytes:
        """The bytes of that digest. Raises DataError when absent, DriftError when they are not what was stored."""
        try:
            data = self._files.read(_name(digest))
        except FileNotFoundError as error:
            raise DataError(f"no blob {digest} at {self.uri(digest)}: it was never stored here, or removed") from error
        found = digest_bytes(data)
        if found != digest:
            raise DriftError(f"blob at {self.uri(digest)} has the digest {found}, not its name's: it was changed")
        return data

    def exists(self, digest: str) -> bool:
        """Whether a blob of that digest is there (its bytes are not read)."""
        return self._files.exists(_name(digest))

    def uri(self, digest: str) -> str:
        """The place of the blob."""
        return self._files.uri(_name(digest))

    def digest_of(self, reference: str) -> str:
        """The digest that a blob's URI, or the digest itself, names; it may still be absent."""
        return "".join(reference.rstrip("/").rsplit("/", 2)[-2:]) if "/" in reference else reference

    def put_json(self, value: object) -> str:
        """Store a JSON value as canonical JSON; gives its digest."""
        return self.put(canonical_json(value))

    def get_json(self, digest: str) -> Any:
        """The JSON value of that digest."""
        return json.loads(self.get(digest))

    def put_items(self, items: Sequence[Item]) -> str:
        """Store items as one table in item_id order; gives the blob's digest. Raises DataError on a doubled id."""
        from eval_tasks.store.parquet import ITEMS

        ordered = sorted(items, key=lambda item: item.item_id)
        _refuse_doubled([item.item_id for item in ordered])
        table = ITEMS.table(
            {
                "item_id": [item.item_id for item in ordered],
                "fields": [_to_text(item.fields) for item in ordered],
                "target": [_to_text(item.target) for item in ordered],
                "metadata": [_to_text(item.metadata) for item in ordered],
                "stratum": [storable_value(item.stratum) for item in ordered],
                "cluster": [storable_value(item.cluster) for item in ordered],
            }
        )
        return self.put(ITEMS.to_bytes(table))

    def get_items(self, digest: str, item_ids: Collection[str] | None = None) -> list[Item]:
        """The items of that blob in item_id order, all or those named. Raises DataError for an id that is not in it."""
        return list(self.iter_items(digest, item_ids))

    def iter_items(self, digest: str, item_ids: Collection[str] | None = None) -> Iterator[Item]:
        """As `get_items`, a few at a time; an id that is not there is raised at the end."""
        from eval_tasks.store.parquet import opened

        wanted = None if item_ids is None else set(item_ids)
        with opened(self.get(digest), self.uri(digest)) as file:
            for part in file.iter_batches(batch_size=1000):
                for item in _items_of(part, wanted):
                    if wanted is not None:
                        wanted.remove(item.item_id)
                    yield item
        if wanted:
            shown = ", ".join(sorted(wanted)[:3])
            raise DataError(f"{len(wanted)} items are not in blob {self.uri(digest)}: {shown}")

    def put_batches(self, batches: Iterable[PlannedBatch]) -> str:
        """Store a plan's batches as one table in batch order; gives the blob's digest."""
        from eval_tasks.store.parquet import BATCHES

        ordered = sorted(batches, key=lambda batch: batch.batch)
        _refuse_doubled([str(batch.batch) for batch in ordered])
        names = ("batch", "shard", "benchmark_id", "item_ids", "cost_tokens")
        return self.put(BATCHES.to_bytes(BATCHES.table({n: [getattr(b, n) for b in ordered] for n in names})))

    def get_batches(self, digest: str, shard: int | None = None) -> list[PlannedBatch]:
        """The batches of that blob in batch order, all or one shard's."""
        table = self._table(digest)
        if shard is not None:
            import pyarrow.compute as pc

            table = table.filter(pc.equal(table["shard"], shard))
        return [PlannedBatch(**{**row, "item_ids": tuple(row["item_ids"])}) for row in table.to_pylist()]

    def _table(self, digest: str) -> Any:
        from eval_tasks.store.parquet import opened

        with opened(self.get(digest), self.uri(digest)) as file:
            return file.read()


def _name(digest: str) -> str:
    return f"blobs/{digest[:2]}/{digest[2:]}"


def _items_of(part: Any, wanted: Collection[str] | None) -> Iterator[Item]:
    """The wanted items of a record batch."""
    columns = [part.column(name).to_pylist() for name in ("item_id", "fields", "target", "metadata")]
    groups = [part.column(name).to_pylist() for name in ("stratum", "cluster")]
    for item_id, fields, target, metadata, stratum, cluster in zip(*columns, *groups, strict=True):
        if wanted is None or item_id in wanted:
            yield Item(
                item_id=item_id,
                fields=json.loads(fields),
                target=json.loads(target),
                metadata=json.loads(metadata) if metadata != "{}" else {},
                stratum=stratum,
                cluster=cluster,
            )


def _to_text(value: object) -> str:
    """JSON text that keeps integers of any size; keys sorted, so that equal items give equal bytes."""
    return json.dumps(storable_value(value), ensure_ascii=False, sort_keys=True)


def _refuse_doubled(ids: Sequence[str]) -> None:
    """`ids` are sorted, so that equal ones are neighbours."""
    doubled = sorted({left for left, right in pairwise(ids) if left == right})
    if doubled:
        raise DataError(f"{len(doubled)} ids are there more than once: {', '.join(doubled[:3])}")
