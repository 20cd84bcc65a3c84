"""Words are what the rule says they are, and the compiled form agrees with it on any text."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eval_tasks.contamination.hashing import Hasher, hashed, joined
from eval_tasks.contamination.text import CharClass, normalised, tables, words

HASHER = Hasher()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Eiffel Tower, a landmark!", "the eiffel tower a landmark"),
        ("the\n\neiffel\t tower  a\u00a0landmark", "the eiffel tower a landmark"),
        ("don't don’t well-known 1,000.5", "don t don t well known 1 000 5"),
        ("Straße STRASSE", "strasse strasse"),
        ("ﬁne Ａ１ ½", "fine a1 1 2"),
        ("cafe\u0301 café CAFÉ", "café café café"),
        ("soft\u00adhyphen zero\u200bwidth", "softhyphen zerowidth"),
        ("2x + 5 = 15", "2x 5 15"),
        ("", ""),
        ("... !?\n", ""),
    ],
)
def test_punctuation_white_space_case_and_forms_do_not_matter(text: str, expected: str) -> None:
    assert words(text) == expected.split()


def test_scripts_without_spaces_are_read_by_character() -> None:
    assert words("北京大学是中国的大学。") == list("北京大学是中国的大学")
    assert words("東京タワーabc3") == [*"東京タワー", "abc3"]
    assert words("ภาษาไทย") == list("ภาษาไทย")
    assert words("กำลัง") == [*words("กำลัง")] and len(words("ก็")) == 1  # a mark stays with its letter


def test_arabic_reads_alike_with_and_without_vowel_points() -> None:
    assert words("العَرَبِيَّةُ لُغَةٌ") == words("العربية لغة") == ["العربية", "لغة"]
    assert words("العـــربية") == ["العربية"]
    assert words("ﺍﻟﻌﺮﺑﻴﺔ") == ["العربية"]
    assert words("می\u200cخواهم") == words("میخواهم")


def test_korean_and_hindi_are_words() -> None:
    assert words("서울은 대한민국의 수도이다.") == ["서울은", "대한민국의", "수도이다"]
    assert words(unicodedata.normalize("NFD", "서울은 수도")) == ["서울은", "수도"]
    assert words("यह एक वाक्य है।") == ["यह", "एक", "वाक्य", "है"]


def hashes(texts: list[str]) -> list[tuple[int, ...]]:
    """Word hashes of each text by the compiled path."""
    found: list[tuple[int, ...]] = [()] * len(texts)
    for numbers, part in HASHER.hash(*joined([text.encode("utf-8", "replace") for text in texts])):
        begin = 0
        for number, end in zip(numbers.tolist(), part.ends.tolist(), strict=True):
            if end > begin:
                found[number] = tuple(part.words[begin:end].tolist())
            begin = end
    return found


def word_hash(word: str) -> int:
    """Of one normalised word."""
    (found,) = hashed([word], settled=True).words.tolist()
    return int(found)


mixed = st.text(st.one_of(st.sampled_from("abcXYZ 019.,’\n\u0301é中ไแ\u0650ß½ﬁ가\u11a8"), st.characters(codec="utf-8")))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(st.text(), mixed, st.text(st.characters(codec="ascii"))), min_size=1, max_size=4))
@example(["abcdefgh", "abcdefghabcdefgh x", "abcdefg", "é" * 5 + "abcdefgh"])
@example(["a\u0301b 中a中a", "x", "", "ab½½cd"])
def test_the_compiled_words_are_the_rule_s(texts: list[str]) -> None:
    expected = [tuple(word_hash(word) for word in words(text)) for text in texts]
    assert hashes(texts) == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(st.sampled_from("abé中1"), min_size=1, max_size=20), min_size=2, max_size=30, unique=True))
def test_other_words_have_other_hashes(texts: list[str]) -> None:
    every = {word for text in texts for word in words(text)}
    assert len({word_hash(word) for word in every}) == len(every)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_and_what_is_no_utf8_separates(data: bytes) -> None:
    parts = HASHER.hash(*joined([data]))
    n_invalid = sum(int(part.n_invalid_bytes.sum()) for _, part in parts)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        assert n_invalid > 0
        return
    assert n_invalid == 0
    found = np.concatenate([part.words for _, part in parts]).tolist()
    assert found == [word_hash(word) for word in words(text)]


def test_words_around_invalid_bytes_stay() -> None:
    ((_, part),) = HASHER.hash(*joined([b"good \xff\xfe words\xc3 here"]))
    assert part.words.tolist() == [word_hash(word) for word in ("good", "words", "here")]
    assert part.n_invalid_bytes.tolist() == [3]


def test_every_single_character_reads_as_the_rule_says() -> None:
    points = [p for p in range(0x110000) if not 0xD800 <= p <= 0xDFFF and unicodedata.category(chr(p)) != "Cn"]
    texts = [f"a{chr(p)}b {chr(p)}" for p in points if tables().raw[p] in (CharClass.MAPPED, CharClass.CONTEXT)]
    texts += [f"a{chr(p)}b {chr(p)}" for p in points[::97]]
    expected = [words(text) for text in texts]
    unique = sorted({word for each in expected for word in each})
    known = dict(zip(unique, hashed(unique, settled=True).words.tolist(), strict=True))
    assert hashes(texts) == [tuple(known[word] for word in each) for each in expected]


def test_the_normal_form_is_stable_under_case_and_composition() -> None:
    for text in ("Ǆ", "İstanbul", "ΌΣΟΣ", "e\u0301\u0323"):
        assert normalised(normalised(text)) == normalised(text)
        assert words(text.upper()) == words(text.lower()) or text == "İstanbul"
