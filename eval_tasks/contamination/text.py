"""Text -> normalised words: the rule that items and corpora are read by, in plain Python. The kernels do it faster.

NFKC, case folding, NFKC again; then letters, digits and their marks make words, and everything else (punctuation,
symbols, any white space) stands between words. In scripts that are written without spaces every character is a word of
its own. Marks that writers may leave out (Arabic and Hebrew vowel points, the Arabic tatweel, zero-width characters)
are dropped.
"""

from __future__ import annotations

import functools
import unicodedata
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

TEXT_RULE = f"words-1/unicode-{unicodedata.unidata_version}"
"""Version of this module's rule. It changes with the rule, and with the Unicode tables that it reads."""

UNICODE_POINTS = 0x110000
_ASSIGNED = (*range(0x34000), *range(0xE0000, 0xE0200))
"""Every character of Unicode lies here; the rest is unassigned or private, and separates."""


class CharClass(IntEnum):
    """What a character does. MAPPED and CONTEXT only occur in text that is not normalised yet.

    LETTER goes on with a word, UNIT is a word of its own, MARK goes on with whatever is open, DROPPED is as if it were
    not there, SEPARATOR ends a word. MAPPED stands for other characters. CONTEXT may change with its neighbours, so
    that a text which has one is normalised as a whole.
    """

    SEPARATOR = 0
    LETTER = 1
    UNIT = 2
    MARK = 3
    DROPPED = 4
    MAPPED = 5
    CONTEXT = 6


_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x1A20, 0x1AAF),  # Tai Tham
    (0x3005, 0x3007),  # Han iteration mark and zero
    (0x3040, 0x312F),  # Hiragana, Katakana, Bopomofo
    (0x31A0, 0x31BF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xA000, 0xA4CF),  # Yi
    (0xF900, 0xFAFF),
    (0x1B000, 0x1B16F),
    (0x20000, 0x3FFFF),
)
_OPTIONAL_MARKS = (
    (0x0591, 0x05C7),  # Hebrew points
    (0x0610, 0x061A),  # Arabic vowel and Quranic marks; the ones that are part of a letter (U+0653-0655) stay
    (0x0640, 0x0640),
    (0x064B, 0x0652),
    (0x0656, 0x065F),
    (0x0670, 0x0670),
    (0x06D6, 0x06ED),
    (0xFE00, 0xFE0F),
)
_HANGUL_VOWELS_AND_TAILS = ((0x1160, 0x11FF),)
_HANGUL_SYLLABLES = (0xAC00, 0xD7A3)


def normalised(text: str) -> str:
    """`text` in the form that words are cut from."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def words(text: str) -> list[str]:
    """The normalised words of `text`. Slow: for single texts, and what the kernels are held against."""
    classes = tables().settled
    found: list[str] = []
    word, is_unit = "", False
    for char in normalised(text):
        match classes[ord(char)]:
            case CharClass.LETTER:
                if is_unit:
                    found.append(word)
                    word, is_unit = "", False
                word += char
            case CharClass.UNIT:
                if word:
                    found.append(word)
                word, is_unit = char, True
            case CharClass.MARK:
                word += char if word else ""
            case CharClass.SEPARATOR:
                if word:
                    found.append(word)
                word, is_unit = "", False
    if word:
        found.append(word)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The rule as arrays, one entry per code point.

    `settled`: classes in normalised text, uint8. `raw`: classes in any text. What a MAPPED `c` stands for is
    ``mapped[map_start[c]:map_start[c] + map_length[c]]``, code points of normalised text.
    """

    settled: npt.NDArray[np.uint8]
    raw: npt.NDArray[np.uint8]
    map_start: npt.NDArray[np.int32]
    map_length: npt.NDArray[np.uint8]
    mapped: npt.NDArray[np.int32]


@functools.cache
def tables() -> Tables:
    """The tables of this process, made once (about half a second)."""
    settled = np.zeros(UNICODE_POINTS, np.uint8)
    for point in _ASSIGNED:
        settled[point] = _settled_class(point)
    raw = settled.copy()
    start, length = np.zeros(UNICODE_POINTS, np.int32), np.zeros(UNICODE_POINTS, np.uint8)
    mapped: list[int] = []
    context = _in_context()
    for point in _ASSIGNED:
        if unicodedata.category(chr(point)) in ("Cn", "Co", "Cs") or _is_fixed(point):
            continue
        stands_for = [ord(char) for char in normalised(chr(point))]
        if point in context or any(other in context for other in stands_for[:1]):
            raw[point] = CharClass.CONTEXT
        elif stands_for != [point]:
            kinds = [settled[other] for other in stands_for]
            # One input character gives at most one word, so that the room for words is known from the bytes.
            whole = all(kind == CharClass.LETTER for kind in kinds) or (kinds == [CharClass.UNIT])
            if len(kinds) > 1 and not whole:
                raw[point] = CharClass.CONTEXT
            else:
                raw[point] = CharClass.MAPPED
                start[point], length[point] = len(mapped), len(stands_for)
                mapped += stands_for
    return Tables(
        settled=settled, raw=raw, map_start=start, map_length=length, mapped=np.array(mapped or [0], np.int32)
    )


def _settled_class(point: int) -> CharClass:
    category = unicodedata.category(chr(point))
    if category == "Cf" or (category[0] in "ML" and _within(point, _OPTIONAL_MARKS)):
        return CharClass.DROPPED
    if category[0] == "M":
        return CharClass.MARK
    if category[0] in "LN":
        return CharClass.UNIT if _within(point, _UNSPACED) else CharClass.LETTER
    return CharClass.SEPARATOR


def _in_context() -> set[int]:
    """Code points whose normal form may depend on what stands beside them: combining ones that are not dropped."""
    found = {point for low, high in _HANGUL_VOWELS_AND_TAILS for point in range(low, high + 1)}
    for point in _ASSIGNED:
        if unicodedata.combining(chr(point)) and not _within(point, _OPTIONAL_MARKS):
            found.add(point)
        parts = unicodedata.decomposition(chr(point)).split()
        if len(parts) > 1 and not parts[0].startswith("<"):
            found.update(int(part, 16) for part in parts[1:])
    return found


def _is_fixed(point: int) -> bool:
    """Large blocks that stand for themselves; looking each up would cost half the time."""
    return _HANGUL_SYLLABLES[0] <= point <= _HANGUL_SYLLABLES[1] or 0x3400 <= point <= 0x9FFF


def _within(point: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(low <= point <= high for low, high in ranges)
