"""Scores in, one immutable Parquet set per (run, benchmark, grader). Added to, never overwritten.

A set is its file and then its entry, written last; readers follow entries only. Knows no scorer and no catalog.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any

import pyarrow.compute as pc

from eval_tasks.digests import canonical_json, digest_parts
from eval_tasks.errors import DataError, UserError, did_you_mean
from eval_tasks.records import Score
from eval_tasks.records.grader import BESIDE
from eval_tasks.store.files import FileStore
from eval_tasks.store.named_files import NamedFiles
from eval_tasks.store.parquet import SCORES, groups_with
from eval_tasks.store.score_rows import score_table


class Scores:
    """What scorers and graders made of the responses, under ``scores/<run_id>/<benchmark_id>/``."""

    def __init__(self, files: FileStore) -> None:
        self._files = files
        self._named = NamedFiles(files)

    def write(self, run_id: str, benchmark_id: str, grader: str, rows: Iterable[Score]) -> None:
        """Store a grader's scores. The same again is a no-op. `rows` in item_id order need the least memory.

        Raises DataError when this grader's scores are there with other content, for a doubled (metric, item), or for a
        row of another benchmark.
        """
        table, digest = score_table(run_id, benchmark_id, rows)
        entries = self._entries(run_id, benchmark_id)
        if grader in entries:
            if entries[grader]["rows_digest"] != digest:
                raise DataError(
                    f"run {run_id!r} has other scores of {benchmark_id} by {grader!r}: a scorer's outputs changed and "
                    "its version did not; give it a new version"
                )
            return
        key = _key(grader)
        name = f"{_folder(run_id, benchmark_id)}/{key}-{digest[:16]}.parquet"
        with self._files.draft(name) as draft:
            SCORES.write(draft.handle, table)
        entry = {
            "grader": grader,
            "sequence": 1 + max((e["sequence"] for e in entries.values()), default=0),
            **NamedFiles.entry(name, draft),
            "n_rows": table.num_rows,
            "rows_digest": digest,
        }
        self._files.write(f"{_folder(run_id, benchmark_id)}/{key}.json", canonical_json(entry))

    def read(
        self,
        run_id: str,
        benchmark_id: str,
        grader: str | None = None,
        metric: str | None = None,
        columns: Collection[str] | None = None,
    ) -> Any:
        """Scores as a pyarrow Table sorted by metric, item_id; `grader` None is the standing one written last.

        Raises UserError for a grader or metric without scores, DataError for a damaged file.
        """
        wanted = SCORES.check_columns(columns)
        entry = self._entry(run_id, benchmark_id, grader)
        filtered = wanted is not None and metric is not None and "metric" not in wanted
        with self._named.open(entry) as file:
            # Rows stand by metric: the row groups of the others need not be read.
            groups = None if metric is None else groups_with(file, "metric", metric)
            table = SCORES.read(file, [*wanted, "metric"] if wanted is not None and filtered else wanted, groups)
            if metric is None:
                return table
            chosen = _of_metric(table, metric)
            if not chosen.num_rows:
                known = pc.unique(SCORES.read(file, ["metric"])["metric"]).to_pylist()
                raise UserError(f"no scores of metric {metric!r} by {entry['grader']!r}; {did_you_mean(metric, known)}")
        return chosen.select(wanted) if filtered else chosen

    def graders(self, run_id: str, benchmark_id: str) -> list[str]:
        """The graders with scores of that run and benchmark, in the order of writing."""
        return list(self._entries(run_id, benchmark_id))

    def standing(self, run_id: str, benchmark_id: str) -> list[str]:
        """The graders whose scores stand for the run: its scorer's versions. People, judges and others are named."""
        return [name for name in self.graders(run_id, benchmark_id) if not name.startswith(BESIDE)]

    def digest(self, run_id: str, benchmark_id: str, grader: str | None = None) -> str:
        """Digest of a score set's content."""
        return str(self._entry(run_id, benchmark_id, grader)["rows_digest"])

    def _entry(self, run_id: str, benchmark_id: str, grader: str | None) -> dict[str, Any]:
        if grader is not None:
            with suppress(FileNotFoundError):
                return self._read_entry(f"{_folder(run_id, benchmark_id)}/{_key(grader)}.json")
        entries = self._entries(run_id, benchmark_id)
        if not entries:
            raise UserError(f"run {run_id!r} has no scores of benchmark {benchmark_id!r}: it was not graded")
        if grader is None:
            standing = [entry for name, entry in entries.items() if not name.startswith(BESIDE)]
            return (standing or list(entries.values()))[-1]
        if grader not in entries:
            raise UserError(f"run {run_id!r} has no scores by grader {grader!r}; {did_you_mean(grader, entries)}")
        return entries[grader]

    def _entries(self, run_id: str, benchmark_id: str) -> dict[str, dict[str, Any]]:
        """Grader -> entry, in the order of writing."""
        found = []
        for name in self._files.names(_folder(run_id, benchmark_id)):
            if not name.endswith(".json"):
                continue
            found.append(self._read_entry(name))
        return {entry["grader"]: entry for entry in sorted(found, key=lambda e: (e["sequence"], e["grader"]))}

    def _read_entry(self, name: str) -> dict[str, Any]:
        try:
            entry: dict[str, Any] = json.loads(self._files.read(name))
        except ValueError as error:
            raise DataError(f"{self._files.uri(name)} is damaged: {error}") from error
        return entry


def _key(grader: str) -> str:
    """What a grader's files are called."""
    return digest_parts([grader])[:16]


def _of_metric(table: Any, metric: str) -> Any:
    """The rows of one metric, which stand together."""
    inside = pc.equal(table["metric"], metric)
    first = pc.index(inside, True).as_py()
    n = pc.sum(inside).as_py() or 0
    return table.slice(max(first, 0), n)


def _folder(run_id: str, benchmark_id: str) -> str:
    return f"scores/{run_id}/{benchmark_id}"
