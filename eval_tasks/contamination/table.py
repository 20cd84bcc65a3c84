"""Texts of benchmark items -> the match table: their words, n-grams and owners. Knows no corpus."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from eval_tasks.contamination.hashing import Ints, Words, hashed
from eval_tasks.contamination.items import SECTIONS, ItemText
from eval_tasks.contamination.rule import SHORTEST_WHOLE, Rule
from eval_tasks.digests import digest_bytes
from eval_tasks.errors import UserError

_ANSWER_WORDS = 8
"""First words of an answer that are looked for near its question."""

_MOST_WORDS = 2**32 - 2
_TEXTS_AT_ONCE = 20_000
_LOAD = 0.6
_FILTER_BITS_PER_GRAM = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Owners:
    """Which item has which segment, one row each: numbers of benchmark and item, section of SECTIONS, segment."""

    benchmark: Ints
    item: Ints
    section: Ints
    segment: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Grams:
    """The n-grams of the segments that have any, as the kernels look them up.

    `words`: of these segments. `counts`: per position in them, 1 where an n-gram begins that counts. `k`: words of the
    sampled grams in the Bloom filter `bits`.
    """

    n: int
    k: int
    words: Words
    slots: npt.NDArray[np.uint64]
    follows: npt.NDArray[np.uint32]
    counts: npt.NDArray[np.uint8]
    bits: npt.NDArray[np.uint64]
    shift: np.uint64
    segment_starts: Ints

    @property
    def n_bytes(self) -> int:
        """Memory of the table."""
        return sum(array.nbytes for array in (self.slots, self.follows, self.counts, self.bits))


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchTable:
    """The distinct texts (segments) of the items of some benchmarks, ready to be looked for.

    A segment stands once per benchmark, however many items share it. `whole`: tables for the segments of 3 words up to
    one fewer than the smallest n, of which only the whole is looked for.
    """

    rule: Rule
    benchmark_ids: tuple[str, ...]
    item_ids: tuple[tuple[str, ...], ...]
    words: Words
    segment_starts: Ints
    owners: Owners
    grams: Grams
    whole: tuple[Grams, ...]
    answers: Words
    answer_starts: Ints
    answer_lengths: Ints

    @property
    def n_segments(self) -> int:
        """Number of distinct texts."""
        return len(self.segment_starts) - 1

    @property
    def n_bytes(self) -> int:
        """Memory of all that matching reads."""
        own = self.words.nbytes + self.segment_starts.nbytes + self.answers.nbytes
        own += self.answer_starts.nbytes + self.answer_lengths.nbytes
        return own + self.grams.n_bytes + sum(grams.n_bytes + grams.words.nbytes for grams in self.whole)

    @property
    def digest(self) -> str:
        """Of the rule and the words of every segment in order: hits of one table mean nothing to another."""
        parts = [self.rule.name, *self.benchmark_ids]
        return digest_bytes("\n".join(parts).encode() + self.words.tobytes() + self.segment_starts.tobytes())

    def counts_at(self, n: int) -> npt.NDArray[np.uint8]:
        """Per position, 1 where an n-gram begins that counts: one with a counting gram of the smallest n in it."""
        smallest = self.grams.n
        if n == smallest:
            return self.grams.counts
        covered = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.grams.counts, dtype=np.int64)])
        n_words = len(self.words)
        at = np.arange(max(0, n_words - n + 1))
        counts = np.zeros(n_words, np.uint8)
        counts[: len(at)] = covered[at + n - smallest + 1] > covered[at]
        for back in range(1, n):  # a gram does not run into the next segment
            ends = self.segment_starts[1:] - back
            counts[ends[ends >= 0]] = 0
        return counts


def build_table(rule: Rule, benchmarks: Sequence[tuple[str, Sequence[ItemText]]]) -> MatchTable:
    """The match table of (benchmark_id, texts) pairs. Raises UserError when there is too much text for one table."""
    segments = _Segments()
    for number, (_, items) in enumerate(benchmarks):
        segments.add_benchmark(number, items)
    words, starts = segments.words()
    if len(words) > _MOST_WORDS:
        raise UserError(f"the items have {len(words):,} words, and one scan takes {_MOST_WORDS:,}; scan fewer at once")
    lengths = np.diff(starts)
    smallest = rule.grams[0]
    every = _grams(words, starts, segments.first_of, smallest, max(1, (smallest - 2) // 2), rule.template_limit)
    short = [n for n in range(SHORTEST_WHOLE, smallest) if (lengths == n).any()]
    answers, answer_starts, answer_lengths = segments.answers(len(lengths))
    return MatchTable(
        rule=rule,
        benchmark_ids=tuple(benchmark_id for benchmark_id, _ in benchmarks),
        item_ids=tuple(tuple(item.item_id for item in items) for _, items in benchmarks),
        words=words,
        segment_starts=starts,
        owners=segments.owners(),
        grams=every,
        whole=tuple(_grams(words, starts, segments.first_of, n, 1, len(lengths), only=lengths == n) for n in short),
        answers=answers,
        answer_starts=answer_starts,
        answer_lengths=answer_lengths,
    )


class _Segments:
    """Distinct texts, in the order they come in, and who has them."""

    def __init__(self) -> None:
        self.first_of: list[int] = [0]
        self._words: list[Words] = []
        self._lengths: list[Ints] = []
        self._owners: list[tuple[int, int, int, int]] = []
        self._answers: dict[int, Words | None] = {}

    def add_benchmark(self, number: int, items: Sequence[ItemText]) -> None:
        known: dict[bytes, int] = {}
        for first in range(0, len(items), _TEXTS_AT_ONCE):
            self._add(number, first, items[first : first + _TEXTS_AT_ONCE], known)
        self.first_of.append(self.first_of[-1] + len(known))

    def _add(self, number: int, first: int, items: Sequence[ItemText], known: dict[bytes, int]) -> None:
        texts: list[str] = []
        places: list[tuple[int, int]] = []
        for item, parts in enumerate(items, first):
            for section, name in enumerate(SECTIONS):
                for text in getattr(parts, name):
                    texts.append(text)
                    places.append((item, section))
        done = hashed(texts)
        begin = 0
        of_item: dict[int, list[int]] = {}
        answers: dict[int, Words] = {}
        for (item, section), end in zip(places, done.ends.tolist(), strict=True):
            words = done.words[begin:end]
            begin = end
            if len(words) == 0:
                continue
            key = words.tobytes()
            if key not in known:
                known[key] = self.first_of[-1] + len(known)
                self._words.append(words.copy())
                self._lengths.append(np.array([len(words)], np.int64))
            self._owners.append((number, item, section, known[key]))
            if section == 0:
                of_item.setdefault(item, []).append(known[key])
            elif SECTIONS[section] == "answer" and item not in answers:
                answers[item] = words[:_ANSWER_WORDS].copy()
        for item, segments in of_item.items():
            for segment in segments:
                # A passage of several questions has no answer of its own.
                self._answers[segment] = None if segment in self._answers else answers.get(item)

    def words(self) -> tuple[Words, Ints]:
        lengths = np.concatenate([np.zeros(1, np.int64), *self._lengths])
        return np.concatenate([np.empty(0, np.uint64), *self._words]), np.cumsum(lengths, dtype=np.int64)

    def owners(self) -> Owners:
        rows = np.array(self._owners, np.int64).reshape(-1, 4)
        return Owners(benchmark=rows[:, 0], item=rows[:, 1], section=rows[:, 2], segment=rows[:, 3])

    def answers(self, n_segments: int) -> tuple[Words, Ints, Ints]:
        lengths = np.zeros(n_segments, np.int64)
        parts = [np.empty(0, np.uint64)]
        for segment, words in sorted(self._answers.items()):
            if words is not None:
                lengths[segment] = len(words)
                parts.append(words)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)[:-1]]) if n_segments else lengths
        return np.concatenate(parts), starts, lengths


def _grams(
    words: Words,
    starts: Ints,
    first_of: Sequence[int],
    n: int,
    stride: int,
    limit: int,
    only: npt.NDArray[np.bool_] | None = None,
) -> Grams:
    """The table of n-grams of segments of at least n words, or of `only` some segments."""
    from eval_tasks.contamination.kernels.grams import chain_grams, enter_filter, enter_grams

    if only is not None:
        taken = [words[starts[s] : starts[s + 1]] for s in np.flatnonzero(only)]
        words = np.concatenate(taken)
        # Segments keep their numbers: one that is not taken is empty here.
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.where(only, np.diff(starts), 0))])
    n_grams = int(np.maximum(np.diff(starts) - n + 1, 0).sum())
    slots = np.zeros(max(64, int(n_grams / _LOAD)), np.uint64)
    firsts, n_segments = np.zeros(len(words), np.uint32), np.zeros(len(words), np.int32)
    last_seen, follows = np.zeros(len(words), np.int32), np.zeros(len(words), np.uint32)
    counts = np.zeros(len(words), np.uint8)
    for low, high in itertools.pairwise(first_of):
        n_segments[:] = 0
        enter_grams(words, starts, low, high, n, slots, firsts, n_segments, last_seen)
        chain_grams(starts, low, high, n, firsts, n_segments, limit, follows, counts)
    log2 = max(7, int(np.ceil(np.log2(max(1, n_grams) * _FILTER_BITS_PER_GRAM))))
    bits = np.zeros(2 ** (log2 - 6), np.uint64)
    shift = np.uint64(min(63, 64 - (log2 - 6)))
    k = n - stride + 1
    enter_filter(words, starts, n, k, bits, shift)
    return Grams(
        n=n,
        k=k,
        words=words,
        slots=slots,
        follows=follows,
        counts=counts,
        bits=bits,
        shift=shift,
        segment_starts=starts,
    )
