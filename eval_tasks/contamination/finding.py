"""Batches of documents + a match table -> what they share, gathered over a shard. Knows no storage."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eval_tasks.contamination.forms import EXAMPLES, RUNS, SEGMENTS
from eval_tasks.contamination.hashing import HashedTexts, Hasher, Ints
from eval_tasks.contamination.readers import Documents
from eval_tasks.contamination.table import Grams, MatchTable

_SPANS_AT_FIRST = 65_536
_EVENTS_AT_MOST = 4_000_000
_EXCERPT_BYTES = 2_000
_SPANS_PER_SEGMENT = 1_000
_POSITION_BITS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A span as it stands in a document; `order` is where in the shard it was met."""

    segment: int
    start: int
    length: int
    answer_near: bool
    file: int
    row: int
    word: int
    document: str
    text: str
    order: int


class Findings:
    """Everything found so far. `n_documents`, `n_words` and `n_bytes` count what was read."""

    def __init__(self, table: MatchTable) -> None:
        self._table = table
        self._hasher = Hasher()
        self._hashes = np.empty(0, np.uint64)
        self._anchors = np.empty((0, 2), np.int64)
        self._spans = np.empty((_SPANS_AT_FIRST, 6), np.int64)
        self._grams = np.array(table.rule.grams, np.int64)
        self._events: list[tuple[npt.NDArray[np.uint64], Ints]] = []
        self._n_events = 0
        self._segments = np.zeros((table.n_segments, 3), np.int64)
        self._examples: dict[tuple[int, int, int], list[Example]] = {}
        self._n_kept = np.zeros(table.n_segments, np.int64)
        self._longest = np.zeros(table.n_segments, np.int64)
        self._last = np.full((table.n_segments, 3), -1, np.int64)
        self._number = 0
        self._order = 0
        self.n_documents = 0
        self.n_empty = 0
        self.n_invalid = 0
        self.n_words = 0
        self.n_bytes = 0

    def add(self, documents: Documents) -> None:
        """Look through some documents."""
        parts = self._hasher.hash(documents.texts, documents.starts, documents.stops)
        n_words = np.zeros(len(documents.starts), np.int64)
        for numbers, texts in parts:
            n_words[numbers] += np.diff(texts.ends, prepend=0)
            self.n_invalid += int(np.count_nonzero(texts.n_invalid_bytes))
            for grams in (self._table.grams, *self._table.whole):
                self._find(documents, numbers, texts, grams)
        self.n_documents += len(documents.starts)
        self.n_empty += int(np.count_nonzero(n_words == 0))
        self.n_words += int(n_words.sum())
        self.n_bytes += int((documents.stops - documents.starts).sum())
        self._order += len(documents.starts)

    def _find(self, documents: Documents, numbers: Ints, texts: HashedTexts, grams: Grams) -> None:
        from eval_tasks.contamination.kernels.grams import find_anchors, find_spans

        if len(grams.words) < grams.n or len(texts.words) < grams.n:
            return
        table = self._table
        self._make_room(len(texts.words) // (grams.n - grams.k + 1) + len(texts.ends) + 1)
        n_anchors = find_anchors(
            texts.words, texts.ends, grams.n, grams.k, grams.bits, grams.shift, self._hashes, self._anchors
        )
        anchors = self._anchors[:n_anchors]
        at = 0
        while at < n_anchors:
            n, reached = find_spans(
                texts.words,
                texts.ends,
                anchors,
                at,
                grams.n,
                grams.k,
                grams.words,
                grams.segment_starts,
                grams.slots,
                grams.follows,
                grams.counts,
                table.answers,
                table.answer_starts,
                table.answer_lengths,
                table.rule.answer_window,
                self._last,
                self._number,
                self._spans,
            )
            self._number += len(texts.ends)
            if n:
                self._gather(documents, numbers, texts, self._spans[:n])
            if reached == at:  # one document has more spans than there is room for
                self._spans = np.empty((2 * len(self._spans), 6), np.int64)
            at = reached

    def _make_room(self, n_anchors: int) -> None:
        if len(self._hashes) < n_anchors:
            self._hashes = np.empty(n_anchors + n_anchors // 4, np.uint64)
            self._anchors = np.empty((n_anchors + n_anchors // 4, 2), np.int64)

    def _gather(self, documents: Documents, numbers: Ints, texts: HashedTexts, spans: Ints) -> None:
        from eval_tasks.contamination.kernels.grams import merge_spans

        order = np.lexsort((spans[:, 3], spans[:, 2], spans[:, 1], spans[:, 0]))
        runs = np.empty((len(spans) * len(self._grams), 3), np.int64)
        segments = np.empty((len(spans), 3), np.int64)
        n_runs, n_segments = merge_spans(spans, order, self._grams, self._table.segment_starts, runs, segments)
        self._add_events(runs[:n_runs])
        np.add.at(self._segments[:, 0], segments[:n_segments, 0], 1)
        np.add.at(self._segments[:, 1], segments[:n_segments, 0], segments[:n_segments, 1])
        np.add.at(self._segments[:, 2], segments[:n_segments, 0], segments[:n_segments, 2])
        self._keep_examples(documents, numbers, texts, spans)

    def _add_events(self, runs: Ints) -> None:
        """Each run as a step up where it begins and a step down behind it."""
        if len(runs) == 0:
            return
        which = runs[:, 0].astype(np.uint64) << np.uint64(_POSITION_BITS)
        keys = np.concatenate([which | runs[:, 1].astype(np.uint64), which | runs[:, 2].astype(np.uint64)])
        steps = np.concatenate([np.ones(len(runs), np.int64), -np.ones(len(runs), np.int64)])
        self._events.append(_summed(keys, steps))
        self._n_events += len(self._events[-1][0])
        if self._n_events > _EVENTS_AT_MOST:
            self._events = [self._all_events()]
            self._n_events = len(self._events[0][0]) // 2  # the next time, only when as much again has come

    def _all_events(self) -> tuple[npt.NDArray[np.uint64], Ints]:
        if not self._events:
            return np.empty(0, np.uint64), np.empty(0, np.int64)
        return _summed(np.concatenate([e[0] for e in self._events]), np.concatenate([e[1] for e in self._events]))

    def runs(self) -> pa.Table:
        """Of the form RUNS: how many documents hold each n-gram, as runs of equal numbers."""
        keys, steps = self._all_events()
        if len(keys) == 0:
            return RUNS.schema.empty_table()
        held = np.cumsum(steps)[:-1]
        which = (keys >> np.uint64(_POSITION_BITS)).astype(np.int64)
        at = (keys & np.uint64((1 << _POSITION_BITS) - 1)).astype(np.int64)
        here = held > 0
        n = self._grams[which[:-1][here]]
        columns = {"n": n.astype(np.int32), "start": at[:-1][here], "stop": at[1:][here], "n_documents": held[here]}
        return pa.table(columns, schema=RUNS.schema)

    def segments(self) -> pa.Table:
        """Of the form SEGMENTS."""
        found = np.flatnonzero(self._segments[:, 0])
        names = ("n_documents", "n_answer_near", "n_whole")
        columns = {name: self._segments[found, k] for k, name in enumerate(names)}
        return pa.table({"segment": found, **columns}, schema=SEGMENTS.schema)

    def examples(self) -> pa.Table:
        """Of the form EXAMPLES: each different span of a segment in the first documents that have it."""
        kept = [asdict(example) for _, examples in sorted(self._examples.items()) for example in examples]
        return EXAMPLES.table({name: [example[name] for example in kept] for name in EXAMPLES.schema.names})

    def _keep_examples(self, documents: Documents, numbers: Ints, texts: HashedTexts, spans: Ints) -> None:
        """The first documents of each different span: what is kept of two shards together is that of their sum."""
        limit = self._table.rule.examples
        by_span = np.lexsort((spans[:, 4], spans[:, 0], -spans[:, 3], spans[:, 2], spans[:, 1]))
        ordered = spans[by_span]
        new = np.ones(len(ordered), np.bool_)
        new[1:] = (ordered[1:, 1:4] != ordered[:-1, 1:4]).any(axis=1)
        firsts = np.flatnonzero(new)
        for first, stop in zip(firsts.tolist(), [*firsts[1:].tolist(), len(ordered)], strict=True):
            key = tuple(ordered[first, 1:4].tolist())
            kept = self._examples.get(key)
            if kept is None and not self._has_room(*key):
                continue
            kept = self._examples.setdefault(key, [])
            seen: set[int] = set()
            for at in range(first, stop):
                order = self._order + int(numbers[ordered[at, 0]])
                if len(seen) == limit or (len(kept) == limit and order > kept[-1].order):
                    break
                if order not in seen:
                    seen.add(order)
                    kept.append(self._example(documents, order - self._order, texts, ordered[at].tolist()))
                    kept.sort(key=lambda each: each.order)
                    del kept[limit:]

    def _has_room(self, segment: int, _start: int, length: int) -> bool:
        """Whether another span of a segment may be kept: the first so many, and any that is longer than all before."""
        if self._n_kept[segment] >= _SPANS_PER_SEGMENT and length <= self._longest[segment]:
            return False
        self._n_kept[segment] += 1
        self._longest[segment] = max(self._longest[segment], length)
        return True

    def _example(self, documents: Documents, document: int, texts: HashedTexts, row: list[int]) -> Example:
        _, segment, start, length, word, near = row
        first = int(texts.ends[row[0] - 1]) if row[0] else 0
        return Example(
            segment=segment,
            start=start,
            length=length,
            answer_near=bool(near),
            file=documents.file,
            row=int(documents.rows[document]),
            word=word - first,
            document=documents.name(document),
            text=_excerpt(texts, row[0], word, length),
            order=self._order + document,
        )


def _excerpt(texts: HashedTexts, text: int, word: int, length: int) -> str:
    """What stands in a text from a word to the last one of a span."""
    begin = int(texts.places[word])
    last = int(texts.places[word + length - 1])
    stop = min(begin + _EXCERPT_BYTES, int(texts.stops[text]))
    found = texts.texts[begin:stop].tobytes()
    if last < stop:  # the last word ends at the first white space behind its beginning
        tail = found[last - begin :].split(None, 1)
        found = found[: last - begin] + (tail[0] if tail else b"")
    return found.decode("utf-8", "replace")


def _summed(keys: npt.NDArray[np.uint64], steps: Ints) -> tuple[npt.NDArray[np.uint64], Ints]:
    """Steps at equal keys added, keys ascending."""
    found, inverse = np.unique(keys, return_inverse=True)
    sums = np.zeros(len(found), np.int64)
    np.add.at(sums, inverse, steps)
    return found, sums
