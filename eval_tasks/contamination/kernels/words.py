"""UTF-8 bytes -> one 64-bit hash per normalised word, by the rule of `eval_tasks.contamination.text`.

A word's hash folds its normalised UTF-8 bytes, 8 at a time, with its length mixed into the last step. Words of up to 7
bytes cannot collide; longer ones do with probability 2**-64.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from eval_tasks.contamination.kernels.machine import load_word, trailing_zeros
from eval_tasks.contamination.text import CharClass

_ONES = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_LOW7 = np.uint64(0x7F7F7F7F7F7F7F7F)
_CASE = np.uint64(0x2020202020202020)
_FROM_A = _ONES * np.uint64(0x80 - ord("a"))
_PAST_Z = _ONES * np.uint64(0x80 - ord("z") - 1)
_FROM_0 = _ONES * np.uint64(0x80 - ord("0"))
_PAST_9 = _ONES * np.uint64(0x80 - ord("9") - 1)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SEED = np.uint64(0x243F6A8885A308D3)
_0, _1, _3, _8, _32, _56 = (np.uint64(n) for n in (0, 1, 3, 8, 32, 56))

_LETTER, _UNIT, _MARK = int(CharClass.LETTER), int(CharClass.UNIT), int(CharClass.MARK)
_DROPPED, _MAPPED, _CONTEXT = int(CharClass.DROPPED), int(CharClass.MAPPED), int(CharClass.CONTEXT)


@njit(inline="always")
def _mixed(h, x):
    h = (h ^ x) * _FACTOR
    return h ^ (h >> _32)


@njit(inline="always")
def _loaded(text, at):
    """8 bytes from `at` on, as far as the text goes, then zeros."""
    if at + _8 <= np.uint64(len(text)):
        return load_word(text, at)
    x = _0
    for k in range(len(text) - np.int64(at)):
        x |= np.uint64(text[at + np.uint64(k)]) << (np.uint64(k) << _3)
    return x


@njit(inline="always")
def _stops(x):
    """The high bit of every byte that is no ASCII letter or digit."""
    low = x & _LOW7
    cased = low | _CASE
    inside = ((cased + _FROM_A) & ~(cased + _PAST_Z)) | ((low + _FROM_0) & ~(low + _PAST_9))
    return (inside & ~x & _HIGH) ^ _HIGH


@njit(inline="always")
def _first_bytes(x, n):
    """The first n < 8 bytes of lower-cased x, and n in the last byte."""
    return ((x | _CASE) & ((_1 << (n << _3)) - _1)) | (n << _56)


@njit
def _decoded(text, at, end):
    """(code point, length) of the UTF-8 sequence at a byte >= 0x80; code point -1 and length 1 where it is invalid."""
    first = np.int64(text[at])
    if first < 0xC2 or first > 0xF4:
        return np.int64(-1), _1
    n = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if at + np.uint64(n) > end:
        return np.int64(-1), _1
    point = first & (0x7F >> n)
    for k in range(1, n):
        byte = np.int64(text[at + np.uint64(k)])
        if byte & 0xC0 != 0x80:
            return np.int64(-1), _1
        point = (point << 6) | (byte & 0x3F)
    shortest = 0x80 if n == 2 else 0x800 if n == 3 else 0x10000
    if point < shortest or point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
        return np.int64(-1), _1
    return point, np.uint64(n)


@njit(inline="always")
def _pushed_byte(byte, h, rest, n):
    """A word in the making (hash so far, up to 7 bytes not folded yet, their number) with one byte more."""
    rest |= np.uint64(byte) << (n << _3)
    n += _1
    if n == _8:
        return _mixed(h, rest), _0, _0
    return h, rest, n


@njit
def _pushed(point, h, rest, n):
    """A word in the making with one code point more, as UTF-8."""
    if point < 0x80:
        return _pushed_byte(point, h, rest, n)
    if point < 0x800:
        h, rest, n = _pushed_byte(0xC0 | (point >> 6), h, rest, n)
    elif point < 0x10000:
        h, rest, n = _pushed_byte(0xE0 | (point >> 12), h, rest, n)
        h, rest, n = _pushed_byte(0x80 | ((point >> 6) & 0x3F), h, rest, n)
    else:
        h, rest, n = _pushed_byte(0xF0 | (point >> 18), h, rest, n)
        h, rest, n = _pushed_byte(0x80 | ((point >> 12) & 0x3F), h, rest, n)
        h, rest, n = _pushed_byte(0x80 | ((point >> 6) & 0x3F), h, rest, n)
    return _pushed_byte(0x80 | (point & 0x3F), h, rest, n)


@njit
def _slow_words(  # noqa: C901  one state machine, compiled as one
    text, at, end, k, words, places, h, rest, n, open_, classes, settled, start, length, mapped
):
    """Characters one by one, from a non-ASCII one on, until plain ASCII begins again.

    `open_`: 0 nothing, 1 a word, 2 a unit. Gives (position, number of words, whether a CONTEXT character was met,
    number of invalid bytes).
    """
    n_bad = 0
    while at < end:
        first = text[at]
        size = _1
        if first < 0x80:
            point = np.int64(first)
            if 0x41 <= point <= 0x5A:
                point += 32
            kind = _LETTER if (0x61 <= point <= 0x7A or 0x30 <= point <= 0x39) else 0
        else:
            point, size = _decoded(text, at, end)
            if point < 0:
                n_bad += 1
                kind = 0
            else:
                kind = np.int64(classes[point])
        if kind == _CONTEXT:
            return at, k, True, n_bad
        n_points, where = 1, 0
        if kind == _MAPPED:
            n_points, where = np.int64(length[point]), np.int64(start[point])
        for each in range(n_points):
            if n_points > 1 or kind == _MAPPED:
                point = np.int64(mapped[where + each])
                settled_kind = np.int64(settled[point])
            else:
                settled_kind = kind
            if settled_kind == _DROPPED or (settled_kind == _MARK and open_ == 0):
                continue
            if open_ != 0 and (settled_kind == 0 or settled_kind == _UNIT or (settled_kind == _LETTER and open_ == 2)):
                words[k] = _mixed(h, rest | (n << _56))
                k += _1
                open_ = 0
            if settled_kind == 0:
                continue
            if open_ == 0:
                h, rest, n = _SEED, _0, _0
                places[k] = np.uint32(at)
                open_ = 2 if settled_kind == _UNIT else 1
            h, rest, n = _pushed(point, h, rest, n)
        at += size
        if open_ == 0 and first < 0x80 and at < end and text[at] < 0x80:
            break
    if open_ != 0:
        words[k] = _mixed(h, rest | (n << _56))
        k += _1
    return at, k, False, n_bad


@njit(nogil=True)
def hash_words(text, starts, ends, words, places, doc_ends, in_context, n_bad, classes, settled, start, length, mapped):
    """The words of documents ``text[starts[d]:ends[d]]``; gives their number.

    text: uint8. words: uint64, room for ``bytes // 2 + 1`` per
    document; places: uint32, the byte at which each word begins. doc_ends[d]: words before the end of document d. A
    document with a CONTEXT character has no words and ``in_context[d]`` is 1: it must be normalised first. n_bad[d]:
    bytes that are no UTF-8; they separate words. `classes` is the rule's `raw` table, or `settled` for normalised text.
    """
    k = _0
    for d in range(len(starts)):
        at, end, first = np.uint64(starts[d]), np.uint64(ends[d]), k
        while at < end:
            x = _loaded(text, at)
            n = trailing_zeros(_stops(x)) >> _3
            left = end - at
            if n == _0:
                if text[at] < 0x80:
                    at += _1
                    continue
                at, k, context, bad = _slow_words(
                    text, at, end, k, words, places, _SEED, _0, _0, 0, classes, settled, start, length, mapped
                )
                n_bad[d] += bad
                if context:
                    in_context[d] = 1
                    break
                continue
            places[k] = np.uint32(at)
            h = _SEED
            while n == _8 and left > _8:
                h = _mixed(h, x | _CASE)
                at += _8
                left -= _8
                x = _loaded(text, at)
                n = trailing_zeros(_stops(x)) >> _3
            if n >= left:
                n = left
                if n == _8:
                    words[k] = _mixed(_mixed(h, x | _CASE), _0)
                else:
                    words[k] = _mixed(h, _first_bytes(x, n))
                k += _1
                break
            at += n
            if text[at] < 0x80:
                words[k] = _mixed(h, _first_bytes(x, n))
                k += _1
                at += _1
                continue
            rest = (x | _CASE) & ((_1 << (n << _3)) - _1)
            at, k, context, bad = _slow_words(
                text, at, end, k, words, places, h, rest, n, 1, classes, settled, start, length, mapped
            )
            n_bad[d] += bad
            if context:
                in_context[d] = 1
                break
        if in_context[d]:
            k = first
        doc_ends[d] = np.int64(k)
    return np.int64(k)
