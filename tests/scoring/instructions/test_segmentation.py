"""Words and sentences without any download or data folder."""

from __future__ import annotations

import pytest

from eval_tasks.scoring.instructions.segmentation import count_sentences, count_words, word_tokens


@pytest.mark.parametrize(("text", "n"), [("state-of-the-art it's", 6), ("3.14", 2), ("naïve 日本", 2), ("…", 0)])
def test_words(text: str, n: int) -> None:
    assert count_words(text) == n


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("Dr. Smith paid $3.50 to Mr. Jones.", 1),
        ("It is. So it is! Is it?", 3),
        ("At 5 p.m. we met. Then we left.", 2),
        ("no end", 1),
    ],
)
def test_sentences(text: str, n: int) -> None:
    assert count_sentences(text) == n


def test_word_tokens_split_contractions_and_punctuation() -> None:
    assert word_tokens("NASA's OK. Isn't it?") == ["NASA", "'s", "OK", ".", "Is", "n't", "it", "?"]


def test_segmentation_needs_no_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    import nltk.data

    monkeypatch.setattr(nltk.data, "path", [])
    assert count_sentences("One. Two.") == 2
