"""Hits of all shards -> one row per item of each benchmark, and its status. Joined in DuckDB, one thread, in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eval_tasks.contamination.forms import EXAMPLES, RUNS, SEGMENTS
from eval_tasks.contamination.hashing import Ints
from eval_tasks.contamination.items import SECTIONS
from eval_tasks.contamination.table import MatchTable
from eval_tasks.records import CorpusManifest, ShardHits
from eval_tasks.store import Store
from eval_tasks.store.catalog.corpora import ContaminationStatus
from eval_tasks.store.parquet import Form
from eval_tasks.store.text import storable_value

Floats = npt.NDArray[np.float64]

# Shards hold n-grams as runs; a sum over shards is one step up where a run begins and one down behind it.
_HELD = """
WITH events AS (
    SELECT n, start AS place, n_documents AS step FROM runs
    UNION ALL SELECT n, stop, -n_documents FROM runs
),
steps AS (SELECT n, place, sum(step) AS step FROM events GROUP BY n, place),
held AS (
    SELECT n, place AS start, lead(place) OVER w AS stop,
           sum(step) OVER (w ROWS UNBOUNDED PRECEDING) AS n_documents
    FROM steps WINDOW w AS (PARTITION BY n ORDER BY place)
)
SELECT n, start, stop, n_documents::BIGINT AS n_documents FROM held WHERE n_documents > 0 ORDER BY n, start
"""

_SHARES = """
WITH of_segment AS (
    SELECT n, segment,
           sum(CASE WHEN n_documents <= $limit THEN counted ELSE 0 END) AS found,
           sum(CASE WHEN n_documents > $limit THEN counted ELSE 0 END) AS frequent
    FROM held GROUP BY n, segment
)
SELECT o.benchmark, o.item, o.section, s.n,
       sum(s.found)::BIGINT AS found, sum(s.frequent)::BIGINT AS frequent
FROM owners o JOIN of_segment s USING (segment)
GROUP BY ALL ORDER BY ALL
"""

_DOCUMENTS = """
WITH of_segment AS (
    SELECT segment, sum(n_documents) AS n_documents, sum(n_answer_near) AS n_answer_near, sum(n_whole) AS n_whole
    FROM segments GROUP BY segment
)
SELECT o.benchmark, o.item, max(s.n_documents)::BIGINT AS n_documents,
       max(CASE WHEN o.section = 0 THEN s.n_answer_near ELSE 0 END)::BIGINT AS n_answer_near,
       count(DISTINCT CASE WHEN o.section = 0 AND s.n_whole > 0 THEN o.segment END)::BIGINT AS n_whole
FROM owners o JOIN of_segment s USING (segment)
GROUP BY ALL ORDER BY ALL
"""

_LONGEST = """
WITH ranked AS (
    SELECT *, row_number() OVER (PARTITION BY segment ORDER BY length DESC, shard, file, row, word) AS place
    FROM examples WHERE counts
)
SELECT o.benchmark, o.item, o.section, e.length, e.answer_near, e.file, e.row, e.document, e.text
FROM owners o JOIN ranked e USING (segment) WHERE e.place <= $kept
ORDER BY o.benchmark, o.item, e.length DESC, o.section, e.shard, e.file, e.row, e.word
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shares:
    """Of one benchmark's items: n-grams by [item, section, n]."""

    found: Ints
    frequent: Ints
    total: Ints

    def of(self, section: int) -> Floats:
        """[item, n]: found of those that count, NaN where there is none."""
        left = self.total[:, section] - self.frequent[:, section]
        return np.where(left > 0, self.found[:, section] / np.maximum(left, 1), np.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTables:
    """What one shard found, as tables of the forms RUNS, SEGMENTS and EXAMPLES."""

    shard: int
    runs: pa.Table
    segments: pa.Table
    examples: pa.Table


def read_found(store: Store, hits: ShardHits) -> FoundTables:
    """The tables of a shard's hits."""
    return FoundTables(
        shard=hits.shard,
        runs=_read(store, hits.runs_blob),
        segments=_read(store, hits.segments_blob),
        examples=_read(store, hits.examples_blob),
    )


def reduce_found(
    table: MatchTable, manifest: CorpusManifest, shards: Sequence[FoundTables]
) -> dict[str, dict[str, list[Any]]]:
    """benchmark_id -> columns of forms.ITEMS, a row per item in the order of the match table."""
    import duckdb

    with duckdb.connect(config={"threads": 1, "enable_external_access": False}) as sql:
        sql.register("runs", _all(RUNS, [each.runs for each in shards]))
        sql.register("segments", _all(SEGMENTS, [each.segments for each in shards]))
        held = _with_segments(table, sql.sql(_HELD).to_arrow_table())
        sql.register("held", held)
        sql.register("examples", _examples(table, held, shards))
        sql.register("owners", _owners(table))
        shares = sql.sql(_SHARES, params={"limit": table.rule.document_limit}).to_arrow_table()
        documents = sql.sql(_DOCUMENTS).to_arrow_table()
        longest = sql.sql(_LONGEST, params={"kept": table.rule.examples}).to_arrow_table()
    return {
        benchmark_id: _item_rows(table, manifest, number, shares, documents, longest)
        for number, benchmark_id in enumerate(table.benchmark_ids)
    }


def _all(form: Form, tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables([form.schema.empty_table(), *tables])


def _read(store: Store, blob: str) -> pa.Table:
    return pq.read_table(pa.BufferReader(store.blobs.get(blob)))


def _owners(table: MatchTable) -> pa.Table:
    owners = table.owners
    return pa.table({name: getattr(owners, name) for name in ("benchmark", "item", "section", "segment")})


def _with_segments(table: MatchTable, held: pa.Table) -> pa.Table:
    """Runs of n-grams with the segment they lie in, and how many of them count."""
    n, start, stop = (held[name].to_numpy() for name in ("n", "start", "stop"))
    counted = np.zeros(len(n), np.int64)
    for length in table.rule.grams:
        here = n == length
        if here.any():
            sums = _sums(table.counts_at(length))
            counted[here] = sums[stop[here]] - sums[start[here]]
    segment = np.searchsorted(table.segment_starts, start, side="right") - 1
    return held.append_column("counted", pa.array(counted)).append_column("segment", pa.array(segment))


def _examples(table: MatchTable, held: pa.Table, shards: Sequence[FoundTables]) -> pa.Table:
    """The kept spans with their shard, and whether they hold an n-gram that is no boilerplate, or all of their text."""
    shard = np.repeat([each.shard for each in shards], [each.examples.num_rows for each in shards]).astype(np.int64)
    examples = _all(EXAMPLES, [each.examples for each in shards])
    segment, start, length = (examples[name].to_numpy().astype(np.int64) for name in ("segment", "start", "length"))
    smallest = table.rule.grams[0]
    good = np.zeros(len(table.words) + 1, np.int64)
    here = (held["n"].to_numpy() == smallest) & (held["n_documents"].to_numpy() <= table.rule.document_limit)
    np.add.at(good, held["start"].to_numpy()[here], 1)
    np.add.at(good, held["stop"].to_numpy()[here], -1)
    sums = _sums(((np.cumsum(good)[:-1] > 0) & (table.grams.counts > 0)).astype(np.uint8))
    first = table.segment_starts[segment] + start
    whole = length == np.diff(table.segment_starts)[segment]
    counts = whole | (sums[np.maximum(first + length - smallest + 1, first)] > sums[first])
    return examples.append_column("shard", pa.array(shard)).append_column("counts", pa.array(counts))


def _sums(counts: npt.NDArray[np.uint8]) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def _item_rows(
    table: MatchTable, manifest: CorpusManifest, number: int, shares: pa.Table, documents: pa.Table, longest: pa.Table
) -> dict[str, list[Any]]:
    """Columns of forms.ITEMS for one benchmark, in the order of its items."""
    item_ids = table.item_ids[number]
    n_items = len(item_ids)
    of_items = _shares_of(table, number, n_items, shares)
    by_section = [of_items.of(section) for section in range(len(SECTIONS))]
    mine = documents.filter(pc.equal(documents["benchmark"], number))
    n_documents, n_near, n_whole = (np.zeros(n_items, np.int64) for _ in range(3))
    at = mine["item"].to_numpy()
    for values, name in ((n_documents, "n_documents"), (n_near, "n_answer_near"), (n_whole, "n_whole")):
        values[at] = mine[name].to_numpy()
    n_texts, most_words = _questions(table, number, n_items)
    whole = (n_texts > 0) & (n_whole == n_texts)
    kept, longest_words = _kept_examples(manifest, number, n_items, longest)
    smallest = table.rule.grams[0]
    longest_words = np.maximum(longest_words, smallest * (of_items.found[:, :, 0].sum(axis=1) > 0))
    status = _statuses(table, by_section[0], by_section[2], whole & (most_words >= smallest))
    return {
        "item_id": list(item_ids),
        "status": status,
        "n": [list(table.rule.grams)] * n_items,
        **{f"{name}_share": by_section[k].tolist() for k, name in enumerate(SECTIONS)},
        "n_boilerplate": of_items.frequent[:, :, 0].sum(axis=1).tolist(),
        "longest_words": longest_words.tolist(),
        "n_documents": n_documents.tolist(),
        "n_answer_near": n_near.tolist(),
        "whole_question": whole.tolist(),
        "examples": [json.dumps(storable_value(each), ensure_ascii=False, sort_keys=True) for each in kept],
    }


def _shares_of(table: MatchTable, number: int, n_items: int, shares: pa.Table) -> _Shares:
    grams = table.rule.grams
    shape = (n_items, len(SECTIONS), len(grams))
    found, frequent, total = (np.zeros(shape, np.int64) for _ in range(3))
    mine = shares.filter(pc.equal(shares["benchmark"], number))
    where = (
        mine["item"].to_numpy(),
        mine["section"].to_numpy(),
        np.searchsorted(np.array(grams), mine["n"].to_numpy()),
    )
    found[where], frequent[where] = mine["found"].to_numpy(), mine["frequent"].to_numpy()
    owners = table.owners
    here = owners.benchmark == number
    for k, n in enumerate(grams):
        sums = _sums(table.counts_at(n))
        of_segment = np.diff(sums[table.segment_starts])
        np.add.at(total[:, :, k], (owners.item[here], owners.section[here]), of_segment[owners.segment[here]])
    return _Shares(found=found, frequent=frequent, total=total)


def _questions(table: MatchTable, number: int, n_items: int) -> tuple[Ints, Ints]:
    """Per item: distinct texts of its question, and the words of the longest one."""
    owners = table.owners
    here = (owners.benchmark == number) & (owners.section == 0)
    pairs = np.unique(np.stack([owners.item[here], owners.segment[here]]), axis=1)
    n_texts, most = np.zeros(n_items, np.int64), np.zeros(n_items, np.int64)
    np.add.at(n_texts, pairs[0], 1)
    np.maximum.at(most, pairs[0], np.diff(table.segment_starts)[pairs[1]])
    return n_texts, most


def _kept_examples(
    manifest: CorpusManifest, number: int, n_items: int, longest: pa.Table
) -> tuple[list[list[dict[str, Any]]], Ints]:
    """Per item: its spans, the longest first, and the words of the longest."""
    kept: list[list[dict[str, Any]]] = [[] for _ in range(n_items)]
    words = np.zeros(n_items, np.int64)
    for row in longest.filter(pc.equal(longest["benchmark"], number)).to_pylist():
        item = row["item"]
        words[item] = max(words[item], row["length"])
        kept[item].append(
            {
                "section": SECTIONS[row["section"]],
                "words": row["length"],
                "answer_near": row["answer_near"],
                "file": manifest.files[row["file"]].path,
                "row": row["row"] + 1,
                "document": row["document"],
                "text": row["text"],
            }
        )
    return kept, words


def _statuses(
    table: MatchTable, question: Floats, answer: Floats, whole: npt.NDArray[np.bool_]
) -> list[ContaminationStatus]:
    thresholds = np.array([table.rule.thresholds[n] for n in table.rule.grams])
    over = np.any((question >= thresholds) | (answer >= thresholds), axis=1) | whole  # NaN is never over
    checkable = ~np.all(np.isnan(question) & np.isnan(answer), axis=1)
    return [
        "contaminated" if is_over else "clean" if is_checkable else "not_checkable"
        for is_over, is_checkable in zip(over, checkable, strict=True)
    ]
