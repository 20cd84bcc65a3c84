"""Benchmark words -> a table of their n-grams; corpus words -> maximal spans that they share with the benchmarks.

Every n-gram (n words) of a corpus that stands in the table is found, and what a span shares with an item is compared
word by word, so that a chance hit of the table is never a finding.

Only every `stride`-th position of the corpus is looked at first: an n-gram that starts at c covers the k-gram at the
next multiple of stride, where ``k = n - stride + 1``. Most k-grams are in no item, which a Bloom filter says at the
cost of one memory access; only around one that may be are n-grams looked up.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_BASE = np.uint64(0xD1342543DE82EF95)
_FINAL = np.uint64(0xDB4F0B9175AE2165)
_0, _1, _6, _12, _32 = (np.uint64(n) for n in (0, 1, 6, 12, 32))
_63 = np.uint64(63)
_LOW32 = np.uint64(0xFFFFFFFF)


@njit(inline="always")
def _gram_hash(words, at, n):
    h = _0
    first = np.uint64(at)  # an unsigned index needs no check for negative ones
    for k in range(np.uint64(n)):
        h = h * _BASE + words[first + k]
    h = (h ^ (h >> _32)) * _FINAL
    return h ^ (h >> _32)


@njit(inline="always")
def _same(a, at_a, b, at_b, n):
    for k in range(n):  # noqa: SIM110  numba compiles no generator
        if a[at_a + k] != b[at_b + k]:
            return False
    return True


@njit(inline="always")
def _bits(h):
    return (_1 << (h & _63)) | (_1 << ((h >> _6) & _63)) | (_1 << ((h >> _12) & _63))


@njit(inline="always")
def _slot(h, n_slots):
    return np.int64(((h >> _32) * n_slots) >> _32)


@njit(inline="always")
def _looked_up(words, at, n, item_words, slots):
    """The position in `item_words` of the first n-gram like the one at `at`, or -1."""
    h = _gram_hash(words, at, n)
    mark = h & _LOW32
    slot = _slot(h, np.uint64(len(slots)))
    while slots[slot] != _0:
        if slots[slot] >> _32 == mark:
            where = np.int64((slots[slot] & _LOW32) - _1)
            if _same(words, at, item_words, where, n):
                return where
        slot += 1
        if slot == len(slots):
            slot = 0
    return np.int64(-1)


@njit(nogil=True)
def enter_grams(words, segment_starts, first_segment, last_segment, n, slots, firsts, n_segments, last_seen):
    """Enter the n-grams of segments [first_segment, last_segment) into `slots`.

    firsts[p]: position of the first n-gram equal to the one at p. n_segments[f]: segments of this call that hold the
    n-gram first seen at f; the caller clears it and `last_seen` between benchmarks.
    """
    for segment in range(first_segment, last_segment):
        for at in range(segment_starts[segment], segment_starts[segment + 1] - n + 1):
            h = _gram_hash(words, at, n)
            mark = h & _LOW32
            slot = _slot(h, np.uint64(len(slots)))
            first = np.int64(-1)
            while slots[slot] != _0:
                if slots[slot] >> _32 == mark:
                    where = np.int64((slots[slot] & _LOW32) - _1)
                    if _same(words, at, words, where, n):
                        first = where
                        break
                slot += 1
                if slot == len(slots):
                    slot = 0
            if first < 0:
                first = np.int64(at)
                slots[slot] = (mark << _32) | np.uint64(at + 1)
            firsts[at] = np.uint32(first)
            if last_seen[first] != segment + 1:
                last_seen[first] = segment + 1
                n_segments[first] += 1


@njit(nogil=True)
def chain_grams(segment_starts, first_segment, last_segment, n, firsts, n_segments, limit, follows, counts):
    """counts[p] = 1 for n-grams in at most `limit` segments; those of one n-gram are chained by `follows` (0 ends)."""
    for segment in range(first_segment, last_segment):
        for at in range(segment_starts[segment], segment_starts[segment + 1] - n + 1):
            first = np.int64(firsts[at])
            if n_segments[first] > limit:
                continue
            counts[at] = 1
            if first != at:
                follows[at] = follows[first]
                follows[first] = np.uint32(at)


@njit(nogil=True)
def enter_filter(words, segment_starts, n, k, bits, shift):
    """Set the bits of every k-gram of every segment of at least n words."""
    for segment in range(len(segment_starts) - 1):
        start, stop = segment_starts[segment], segment_starts[segment + 1]
        if stop - start < n:
            continue
        for at in range(start, stop - k + 1):
            h = _gram_hash(words, at, k)
            bits[h >> shift] |= _bits(h)


@njit
def _answer_near(words, first, last, at, length, window, answers, answer_at, n):
    """Whether the answer's first n words stand within `window` words before or behind the span."""
    low, high = max(first, at - window), min(last, at + length + window)
    for c in range(low, high - n + 1):
        if c + n > at and c < at + length:
            continue
        if _same(words, c, answers, answer_at, n):
            return True
    return False


@njit
def _extended(words, begin, end, at, item_words, low, high, position, n, counts):
    """(start in `item_words`, words) of the maximal span around an n-gram; (0, 0) where an earlier one has given it."""
    left = 0
    while position - left > low and at - left > begin and item_words[position - left - 1] == words[at - left - 1]:
        left += 1
        if counts[position - left]:
            return np.int64(0), np.int64(0)
    start, first, length = position - left, at - left, left + n
    while start + length < high and first + length < end and item_words[start + length] == words[first + length]:
        length += 1
    return start, length


@njit(nogil=True)
def find_anchors(words, doc_ends, n, k, bits, shift, hashes, anchors):
    """Places of sampled k-grams that may be in a segment: anchors[a] = (place, document); gives their number.

    Hashes first, then the filter, in two tight loops: so many of its cache misses are under way at once. hashes:
    uint64, anchors: (., 2) int64, each with room for one k-gram per stride and document.
    """
    stride = n - k + 1
    n_hashes = 0
    for doc in range(len(doc_ends)):
        begin = doc_ends[doc - 1] if doc else 0
        for at in range(begin, doc_ends[doc] - k + 1, stride):
            hashes[n_hashes] = _gram_hash(words, at, k)
            anchors[n_hashes, 0] = at
            anchors[n_hashes, 1] = doc
            n_hashes += 1
    n_anchors = 0
    for each in range(n_hashes):
        h = hashes[each]
        mask = _bits(h)
        anchors[n_anchors, 0] = anchors[each, 0]
        anchors[n_anchors, 1] = anchors[each, 1]
        n_anchors += (bits[h >> shift] & mask) == mask
    return n_anchors


@njit(nogil=True)
def find_spans(
    words,
    doc_ends,
    anchors,
    first_anchor,
    n,
    k,
    item_words,
    segment_starts,
    slots,
    follows,
    counts,
    answers,
    answer_starts,
    answer_lengths,
    window,
    last,
    first_number,
    spans,
):
    """Maximal spans of at least n words around `anchors` that documents share with segments, from `first_anchor` on.

    spans[s] = (document, segment, first word in the segment, words, first word in `words`, whether the segment's answer
    stands near). A span that repeats the one before it of its segment is not given again: `last` keeps that one per
    segment, under numbers of documents from `first_number` on, which are new in every call. Gives (spans written,
    anchor to go on with): when room runs out, the document in hand is given up.
    """
    stride = n - k + 1
    n_spans, before, of_doc, doc = 0, 0, first_anchor, -1
    for number in range(first_anchor, len(anchors)):
        anchor = anchors[number, 0]
        if anchors[number, 1] != doc:
            doc = anchors[number, 1]
            before, of_doc = n_spans, number
            begin = doc_ends[doc - 1] if doc else 0
            end = doc_ends[doc]
        for at in range(max(begin, anchor - stride + 1), min(anchor, end - n) + 1):
            position = _looked_up(words, at, n, item_words, slots)
            if position < 0:
                continue
            while True:
                if counts[position] and not (
                    at > begin and position > 0 and counts[position - 1] and item_words[position - 1] == words[at - 1]
                ):
                    segment = np.searchsorted(segment_starts, position, side="right") - 1
                    low, high = segment_starts[segment], segment_starts[segment + 1]
                    start, length = _extended(words, begin, end, at, item_words, low, high, position, n, counts)
                    same = last[segment, 0] == first_number + doc and last[segment, 1] == start
                    if length and not (same and last[segment, 2] == length):
                        if n_spans == len(spans):
                            return before, of_doc
                        word = at - (position - start)
                        spans[n_spans, 0] = doc
                        spans[n_spans, 1] = segment
                        spans[n_spans, 2] = start - low
                        spans[n_spans, 3] = length
                        spans[n_spans, 4] = word
                        spans[n_spans, 5] = answer_lengths[segment] > 0 and _answer_near(
                            words,
                            begin,
                            end,
                            word,
                            length,
                            window,
                            answers,
                            answer_starts[segment],
                            answer_lengths[segment],
                        )
                        n_spans += 1
                        last[segment, 0], last[segment, 1], last[segment, 2] = first_number + doc, start, length
                position = np.int64(follows[position])
                if position == 0:
                    break
    return n_spans, len(anchors)


@njit(nogil=True)
def merge_spans(spans, order, grams, segment_starts, runs, segments):
    """Spans in order of (document, segment, start) -> what each document holds of each segment, once.

    runs[r] = (index of n in `grams`, first and one-past-last position of n-grams found together, in item words).
    segments[s] = (segment, whether its answer stood near, whether a span covers it whole). Gives both numbers of rows.
    """
    n_runs, n_segments = 0, 0
    k = 0
    while k < len(order):
        doc, segment = spans[order[k], 0], spans[order[k], 1]
        stop = k
        near, whole = 0, 0
        low = segment_starts[segment]
        while stop < len(order) and spans[order[stop], 0] == doc and spans[order[stop], 1] == segment:
            near |= spans[order[stop], 5]
            whole |= spans[order[stop], 3] == segment_starts[segment + 1] - low
            stop += 1
        segments[n_segments, 0] = segment
        segments[n_segments, 1] = near
        segments[n_segments, 2] = whole
        n_segments += 1
        for which in range(len(grams)):
            n = grams[which]
            begin, end = -1, -1
            for each in range(k, stop):
                start, length = spans[order[each], 2], spans[order[each], 3]
                if length < n:
                    continue
                if begin >= 0 and start <= end:
                    end = max(end, start + length - n + 1)
                    continue
                if begin >= 0:
                    runs[n_runs, 0], runs[n_runs, 1], runs[n_runs, 2] = which, low + begin, low + end
                    n_runs += 1
                begin, end = start, start + length - n + 1
            if begin >= 0:
                runs[n_runs, 0], runs[n_runs, 1], runs[n_runs, 2] = which, low + begin, low + end
                n_runs += 1
        k = stop
    return n_runs, n_segments
