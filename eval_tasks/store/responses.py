"""Responses in, one Parquet file per batch, then one per benchmark once the run closes. Immutable.

A run's manifest is written last: until it is there, nothing can be read; once it is, only files it names are read, so a
torn, stray or late file is never data. Knows no scorer and no catalog.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from eval_tasks.digests import canonical_json, digest_bytes
from eval_tasks.errors import DataError, UserError, did_you_mean
from eval_tasks.records import Response
from eval_tasks.store.compaction import BatchFile, merged
from eval_tasks.store.files import FileStore
from eval_tasks.store.identity import rows_digest, storable_response, stored_row_digest
from eval_tasks.store.named_files import NamedFiles
from eval_tasks.store.parquet import RESPONSES, opened
from eval_tasks.store.response_rows import responses_of, table_of, without_outputs


class Responses:
    """What the engine produced, under ``responses/<run_id>/``."""

    def __init__(self, files: FileStore) -> None:
        self._files = files
        self._named = NamedFiles(files)

    def write_batch(self, run_id: str, shard: int, batch: int, rows: Sequence[Response]) -> str:
        """Store a batch's rows; gives its result_id, the digest of the rows' identity.

        The same rows again leave the file as it is. Raises DataError for no rows, a doubled item or two benchmarks.
        """
        ordered = [storable_response(row) for row in sorted(rows, key=lambda row: row.item_id)]
        _check_batch(run_id, batch, ordered)
        digests = [stored_row_digest(row) for row in ordered]
        result_id = rows_digest(digests)
        if not self._holds(run_id, batch, result_id, digests):
            table = table_of(ordered, digests, shard=shard, batch=batch)
            self._files.write(_batch_name(run_id, batch, result_id), RESPONSES.to_bytes(table))
        return result_id

    def read_batch(self, run_id: str, batch: int, result_id: str) -> list[Response]:
        """One batch of a run that is still open, in item_id order. DataError: its file is absent or damaged."""
        return list(responses_of(self._batch_table(run_id, batch, result_id)))

    def close(self, run_id: str, results: Mapping[int, str]) -> str:
        """Compact the batches of `results` to one file per benchmark and write the manifest; gives its digest.

        Closing again with the same results changes nothing; with others it is a DataError.
        """
        results_digest = digest_bytes(canonical_json(sorted([batch, results[batch]] for batch in results)))
        if (digest := self._closed_as(run_id, results_digest)) is not None:
            self._remove_batches(run_id, results)
            return digest
        try:
            entries = self._compact(run_id, results, results_digest)
        except DataError:
            # Another closer may have finished and cleaned up while this one was reading.
            if (digest := self._closed_as(run_id, results_digest)) is not None:
                return digest
            raise
        all_rows = rows_digest(part for entry in entries for part in (entry["benchmark_id"], entry["rows_digest"]))
        manifest = {"run_id": run_id, "results_digest": results_digest, "rows_digest": all_rows, "files": entries}
        data = canonical_json(manifest)
        self._files.write(_manifest_name(run_id), data)
        self._remove_batches(run_id, results)
        return digest_bytes(data)

    def is_closed(self, run_id: str) -> bool:
        """Whether the run's manifest is there."""
        return self._files.exists(_manifest_name(run_id))

    def manifest(self, run_id: str) -> dict[str, Any]:
        """The manifest: `files` (benchmark_id, name, n_rows, size, blake3, rows_digest) and the run's `rows_digest`.

        Raises UserError when the run is not closed, DataError when its manifest is damaged.
        """
        name = _manifest_name(run_id)
        try:
            manifest: dict[str, Any] = json.loads(self._files.read(name))
        except FileNotFoundError as error:
            raise UserError(f"run {run_id!r} is not closed: it has no responses to read until all are there") from error
        except ValueError as error:
            raise DataError(f"{self._files.uri(name)} is damaged: {error}") from error
        return manifest

    def thinned_at(self, run_id: str) -> str:
        """When retention took the outputs out of a closed run's rows; '' where it has not."""
        return str(self.manifest(run_id).get("thinned_at", ""))

    def thin(self, run_id: str, at: str) -> int:
        """Take outputs and values per token out of a closed run's rows, and say so in its manifest; gives bytes saved.

        Ids, statuses, sums of logprobs, counts and row digests stay: the run is compared as before, and cannot be
        scored again. The manifest switches to new files at once; the old ones are orphans from then on. A no-op when
        repeated.
        """
        manifest = self.manifest(run_id)
        if manifest.get("thinned_at"):
            return 0
        entries = [self._thinned(entry) for entry in manifest["files"]]
        saved: int = sum(old["size"] - new["size"] for old, new in zip(manifest["files"], entries, strict=True))
        self._files.write(_manifest_name(run_id), canonical_json({**manifest, "files": entries, "thinned_at": at}))
        return saved

    def benchmarks(self, run_id: str) -> list[str]:
        """The benchmark ids that a closed run has rows of."""
        return [entry["benchmark_id"] for entry in self.manifest(run_id)["files"]]

    def run_rows_digest(self, run_id: str) -> str:
        """Digest of all rows of a closed run, latency apart: equal for two runs with identical rows."""
        return str(self.manifest(run_id)["rows_digest"])

    def read(self, run_id: str, benchmark_id: str, columns: Collection[str] | None = None) -> Any:
        """The rows of one benchmark as a pyarrow Table sorted by item_id; only `columns` are read when given."""
        wanted = RESPONSES.check_columns(columns)
        with self._file(run_id, benchmark_id) as file:
            return RESPONSES.read(file, wanted)

    def parts(self, run_id: str, benchmark_id: str, columns: Collection[str]) -> Iterator[Any]:
        """As `read`, a row group at a time, so that outputs of half a million items need not fit in memory."""
        wanted = RESPONSES.check_columns(columns)
        with self._file(run_id, benchmark_id) as file:
            for group in range(file.num_row_groups):
                yield RESPONSES.read(file, wanted, [group])

    def rows(self, run_id: str, benchmark_id: str, item_ids: Collection[str] | None = None) -> Iterator[Response]:
        """The rows of one benchmark in item_id order, all or those named. Raises UserError for an id without a row."""
        if item_ids is None:
            return self._all_rows(run_id, benchmark_id)
        return self._named_rows(run_id, benchmark_id, sorted(set(item_ids)))

    def _all_rows(self, run_id: str, benchmark_id: str) -> Iterator[Response]:
        with self._file(run_id, benchmark_id) as file:
            for part in file.iter_batches(batch_size=1000):
                yield from responses_of(part)

    def _named_rows(self, run_id: str, benchmark_id: str, wanted: list[str]) -> Iterator[Response]:
        import pyarrow as pa
        import pyarrow.compute as pc

        ids = pa.array(wanted, type=pa.string())
        found: list[Response] = []
        with self._file(run_id, benchmark_id) as file:
            for group in range(file.num_row_groups):
                if pc.any(pc.is_in(file.read_row_group(group, columns=["item_id"])["item_id"], value_set=ids)).as_py():
                    table = file.read_row_group(group)
                    found.extend(responses_of(table.filter(pc.is_in(table["item_id"], value_set=ids))))
        absent = sorted(set(wanted) - {row.item_id for row in found})
        if absent:
            raise UserError(f"run {run_id!r} has no response for {', '.join(map(repr, absent[:3]))} of {benchmark_id}")
        return iter(found)

    def _file(self, run_id: str, benchmark_id: str) -> Any:
        """An open ParquetFile of the rows of one benchmark. Raises DataError when it is absent, cut or damaged."""
        entries = {entry["benchmark_id"]: entry for entry in self.manifest(run_id)["files"]}
        if benchmark_id not in entries:
            raise UserError(f"run {run_id!r} has no benchmark {benchmark_id!r}; {did_you_mean(benchmark_id, entries)}")
        return self._named.open(entries[benchmark_id])

    def _closed_as(self, run_id: str, results_digest: str) -> str | None:
        """The manifest's digest when the run is closed. Raises DataError when it was closed with other results."""
        if not self.is_closed(run_id):
            return None
        manifest = self.manifest(run_id)
        if manifest["results_digest"] != results_digest:
            raise DataError(f"run {run_id!r} is closed with other results: its rows are not the same the second time")
        return digest_bytes(canonical_json(manifest))

    def _thinned(self, entry: dict[str, Any]) -> dict[str, Any]:
        """The entry of a new file with the rows of another, without their outputs."""
        name = f"{entry['name'].removesuffix('.parquet')}-thin.parquet"
        with (
            self._named.open(entry) as file,
            self._files.draft(name) as draft,
            RESPONSES.writer(draft.handle) as writer,
        ):
            for group in range(file.num_row_groups):
                writer.write_table(without_outputs(RESPONSES.read(file, None, [group])))
        return {**entry, **NamedFiles.entry(name, draft)}

    def _remove_batches(self, run_id: str, results: Mapping[int, str]) -> None:
        """Remove what the manifest has replaced, and what a closer that died, or a pod that came late, left of it."""
        compacted = {_batch_name(run_id, batch, results[batch]) for batch in results}
        for name in self._files.names(f"{_folder(run_id)}/batches"):
            if name in compacted:
                self._files.remove(name)

    def _compact(self, run_id: str, results: Mapping[int, str], results_digest: str) -> list[dict[str, Any]]:
        batches: dict[str, list[BatchFile]] = {}
        for batch in sorted(results):
            ids = self._batch_table(run_id, batch, results[batch], ["benchmark_id", "item_id"])
            file = BatchFile(batch=batch, result_id=results[batch], item_ids=tuple(ids["item_id"].to_pylist()))
            batches.setdefault(ids["benchmark_id"][0].as_py(), []).append(file)
        return [
            self._compact_benchmark(run_id, benchmark_id, batches[benchmark_id], results_digest)
            for benchmark_id in sorted(batches)
        ]

    def _compact_benchmark(
        self, run_id: str, benchmark_id: str, batches: Sequence[BatchFile], results_digest: str
    ) -> dict[str, Any]:
        name = f"{_folder(run_id)}/{benchmark_id}-{results_digest[:16]}.parquet"
        digests: list[str] = []
        with self._files.draft(name) as draft, RESPONSES.writer(draft.handle) as writer:
            for table in merged(batches, lambda file: self._batch_table(run_id, file.batch, file.result_id)):
                digests.extend(table["row_digest"].to_pylist())
                writer.write_table(table)
        return {
            **NamedFiles.entry(name, draft),
            "benchmark_id": benchmark_id,
            "n_rows": len(digests),
            "rows_digest": rows_digest(digests),
        }

    def _batch_table(self, run_id: str, batch: int, result_id: str, columns: list[str] | None = None) -> Any:
        name = _batch_name(run_id, batch, result_id)
        try:
            with opened(self._files.read(name), self._files.uri(name)) as file:
                return RESPONSES.read(file, columns)
        except FileNotFoundError as error:
            raise DataError(f"batch {batch} of run {run_id!r} is done, but {self._files.uri(name)} is gone") from error

    def _holds(self, run_id: str, batch: int, result_id: str, digests: list[str]) -> bool:
        """Whether the batch's file is there and whole (a damaged one is to be written again)."""
        name = _batch_name(run_id, batch, result_id)
        if not self._files.exists(name):
            return False
        try:
            return [stored_row_digest(row) for row in self.read_batch(run_id, batch, result_id)] == digests
        except DataError:
            return False


def _check_batch(run_id: str, batch: int, ordered: Sequence[Response]) -> None:
    where = f"batch {batch} of run {run_id!r}"
    if not ordered:
        raise DataError(f"{where} has no rows: a lost item is a row with the status 'missing'")
    if len({row.item_id for row in ordered}) != len(ordered):
        raise DataError(f"{where} has two rows for one item")
    if len({row.benchmark_id for row in ordered}) != 1:
        raise DataError(f"{where} has rows of more than one benchmark")


def _folder(run_id: str) -> str:
    return f"responses/{run_id}"


def _batch_name(run_id: str, batch: int, result_id: str) -> str:
    return f"{_folder(run_id)}/batches/{batch:07d}-{result_id}.parquet"


def _manifest_name(run_id: str) -> str:
    return f"{_folder(run_id)}/manifest.json"
