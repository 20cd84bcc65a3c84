"""Texts -> word hashes, many at once, in arrays. The plain-Python rule is in `text`; this is its compiled form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from eval_tasks.contamination.text import normalised, tables

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class HashedTexts:
    """Word hashes of texts, in their order. Text t has ``words[ends[t - 1]:ends[t]]``.

    `places`: the byte at which each word begins, in `texts`, whose text t lies at ``starts[t]:stops[t]``.
    `n_invalid_bytes` per
    text: bytes that are no UTF-8.
    """

    words: Words
    places: npt.NDArray[np.uint32]
    ends: Ints
    texts: npt.NDArray[np.uint8]
    starts: Ints
    stops: Ints
    n_invalid_bytes: Ints


class Hasher:
    """Hashes batch after batch into the same room. What a batch gives is valid until the next one is hashed."""

    def __init__(self) -> None:
        self._words = np.empty(0, np.uint64)
        self._places = np.empty(0, np.uint32)

    def hash(self, texts: npt.NDArray[np.uint8], starts: Ints, stops: Ints) -> list[tuple[Ints, HashedTexts]]:
        """Hash ``texts[starts[t]:stops[t]]``: one or two parts, each with the numbers of the texts in it.

        The second part has the texts that had to be normalised first, without which the first has no words of them.
        """
        from eval_tasks.contamination.kernels.words import hash_words

        rule = tables()
        n = len(starts)
        self._make_room(int((stops - starts).sum()) // 2 + n + 1)
        ends, in_context, invalid = np.zeros(n, np.int64), np.zeros(n, np.uint8), np.zeros(n, np.int64)
        mapping = (rule.map_start, rule.map_length, rule.mapped)
        room = (self._words, self._places)
        n_words = hash_words(texts, starts, stops, *room, ends, in_context, invalid, rule.raw, rule.settled, *mapping)
        first = HashedTexts(
            words=self._words[:n_words],
            places=self._places[:n_words],
            ends=ends,
            texts=texts,
            starts=starts,
            stops=stops,
            n_invalid_bytes=invalid,
        )
        parts = [(np.arange(n), first)]
        if in_context.any():
            numbers = np.flatnonzero(in_context)
            invalid[numbers] = 0
            raw = [texts[starts[t] : stops[t]].tobytes() for t in numbers]
            done = hashed([normalised(text.decode("utf-8", "replace")) for text in raw], settled=True)
            lost = np.array([_n_invalid(text) for text in raw], np.int64)
            parts.append((numbers, replace(done, n_invalid_bytes=lost)))
        return parts

    def _make_room(self, n_words: int) -> None:
        if len(self._words) < n_words:
            self._words = np.empty(n_words + n_words // 4, np.uint64)
            self._places = np.empty(n_words + n_words // 4, np.uint32)


def hashed(texts: Sequence[str], *, settled: bool = False) -> HashedTexts:
    """The word hashes of a few texts, in arrays of their own. `settled`: they are normalised already."""
    from eval_tasks.contamination.kernels.words import hash_words

    rule = tables()
    encoded = [(text if settled else normalised(text)).encode("utf-8", "replace") for text in texts]
    data, starts, stops = joined(encoded)
    n = len(texts)
    room = len(data) // 2 + n + 1
    words, places = np.empty(room, np.uint64), np.empty(room, np.uint32)
    ends, in_context, invalid = np.zeros(n, np.int64), np.zeros(n, np.uint8), np.zeros(n, np.int64)
    mapping = (rule.map_start, rule.map_length, rule.mapped)
    n_words = hash_words(
        data, starts, stops, words, places, ends, in_context, invalid, rule.settled, rule.settled, *mapping
    )
    return HashedTexts(
        words=words[:n_words],
        places=places[:n_words],
        ends=ends,
        texts=data,
        starts=starts,
        stops=stops,
        n_invalid_bytes=invalid,
    )


def joined(texts: Sequence[bytes]) -> tuple[npt.NDArray[np.uint8], Ints, Ints]:
    """Texts in one array, and where each begins and ends."""
    stops = np.cumsum([len(text) for text in texts], dtype=np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), stops[:-1]]) if len(texts) else stops
    return np.frombuffer(b"".join(texts) or b" ", np.uint8), starts, stops


def _n_invalid(text: bytes) -> int:
    """1 for bytes that are no UTF-8: how many of them are not, nobody asks."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return 1
    return 0
