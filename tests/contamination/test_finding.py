"""The spans that are found are those that a slow, obvious search finds, whatever the batches and the room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_tasks.contamination.finding import Findings
from eval_tasks.contamination.hashing import joined
from eval_tasks.contamination.items import ItemText
from eval_tasks.contamination.readers import Documents
from eval_tasks.contamination.rule import Rule
from eval_tasks.contamination.table import MatchTable
from eval_tasks.contamination.text import words
from tests.contamination.corpora import item, sentence, table_of


def documents(texts: Sequence[str], first_row: int = 0) -> Documents:
    data, starts, stops = joined([text.encode() for text in texts])
    return Documents(file=0, texts=data, starts=starts, stops=stops, rows=np.arange(first_row, first_row + len(texts)))


def held(found: Findings) -> dict[tuple[int, int], int]:
    """(n, position in the table's words) -> documents that hold the n-gram there."""
    rows = found.runs().to_pylist()
    return {(row["n"], p): row["n_documents"] for row in rows for p in range(row["start"], row["stop"])}


def expected_held(table: MatchTable, items: Sequence[ItemText], texts: Sequence[str]) -> dict[tuple[int, int], int]:
    """The same by comparing every n-gram of every text with every one of every document."""
    smallest = table.rule.grams[0]
    segments = list(dict.fromkeys(tuple(words(text)) for each in items for text in each.question if words(text)))
    in_texts = Counter[tuple[str, ...]]()
    for segment in segments:
        in_texts.update({segment[k : k + smallest] for k in range(len(segment) - smallest + 1)})
    template = {gram for gram, n in in_texts.items() if n > table.rule.template_limit}
    counts: Counter[tuple[int, int]] = Counter()
    for text in texts:
        document = tuple(words(text))
        for segment, start in zip(segments, table.segment_starts.tolist(), strict=False):
            for n in table.rule.grams:
                grams = {document[k : k + n] for k in range(len(document) - n + 1)}
                for k in range(len(segment) - n + 1):
                    if segment[k : k + n] in grams and spans_one_that_counts(
                        segment, document, k, n, smallest, template
                    ):
                        counts[n, start + k] += 1
    return dict(counts)


def spans_one_that_counts(
    segment: tuple[str, ...], document: tuple[str, ...], k: int, n: int, smallest: int, template: set[tuple[str, ...]]
) -> bool:
    """Whether a maximal span of the document around the n-gram has one gram that is not the template's."""
    for at in range(len(document) - n + 1):
        if document[at : at + n] != segment[k : k + n]:
            continue
        left, right = 0, n
        while k - left > 0 and at - left > 0 and segment[k - left - 1] == document[at - left - 1]:
            left += 1
        while k + right < len(segment) and at + right < len(document) and segment[k + right] == document[at + right]:
            right += 1
        span = segment[k - left : k + right]
        if any(span[j : j + smallest] not in template for j in range(len(span) - smallest + 1)):
            return True
    return False


few_words = st.lists(st.sampled_from(["a", "b", "c", "dd"]), max_size=14).map(" ".join)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(few_words, min_size=1, max_size=6),
    st.lists(few_words, min_size=1, max_size=6),
    st.sampled_from([(2,), (3, 5), (4, 6), (6, 7)]),
    st.integers(1, 3),
)
def test_every_shared_n_gram_is_found_and_no_other(
    questions: list[str], texts: list[str], grams: tuple[int, ...], template_limit: int
) -> None:
    rule = Rule(thresholds=dict.fromkeys(grams, 0.5), template_limit=template_limit)
    items = [item(f"i{n}", question) for n, question in enumerate(questions)]
    table = table_of(rule, *items)
    found = Findings(table)
    found.add(documents(texts))
    assert held(found) == expected_held(table, items, texts)


@pytest.mark.parametrize("n", [8, 13])
def test_a_plant_of_n_words_is_found_wherever_it_stands(n: int) -> None:
    """Only every stride-th position is looked at: none of the places between may be missed."""
    table = table_of(Rule(thresholds={n: 0.5}), item("i", sentence(0, 40)))
    texts = [
        f"{sentence(0, before, 'filler')} {sentence(start, n)} {sentence(0, 3, 'tail')}"
        for before in range(14)
        for start in (0, 5, 40 - n)
    ]
    texts += [sentence(start, n) for start in range(40 - n + 1)]
    missed = [f"filler {sentence(3, n - 1)} tail"]
    for text in texts:
        found = Findings(table)
        found.add(documents([text]))
        assert found.runs().num_rows == 1, text
    found = Findings(table)
    found.add(documents(missed))
    assert found.runs().num_rows == 0


def test_batches_and_room_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    items = [item(f"i{n}", f"{sentence(n * 20, 20)} {sentence(0, 9, 'shared')}") for n in range(6)]
    table = table_of(Rule(thresholds={4: 0.5, 8: 0.2}), *items)
    texts = [f"{sentence(k * 7, 30)} café {sentence(k, 12)} {sentence(0, 9, 'shared')} a\u0301 " * 2 for k in range(40)]
    whole = Findings(table)
    whole.add(documents(texts))
    monkeypatch.setattr("eval_tasks.contamination.finding._SPANS_AT_FIRST", 3)
    monkeypatch.setattr("eval_tasks.contamination.finding._EVENTS_AT_MOST", 10)
    parts = Findings(table)
    for first in range(0, len(texts), 7):
        parts.add(documents(texts[first : first + 7], first))
    assert parts.runs() == whole.runs()
    assert parts.segments() == whole.segments()
    assert parts.examples() == whole.examples()
    assert (parts.n_documents, parts.n_words, parts.n_bytes) == (whole.n_documents, whole.n_words, whole.n_bytes)


def test_a_document_of_one_word_repeated_is_no_trap() -> None:
    table = table_of(Rule(thresholds={8: 0.5}), item("i", "zero " * 300), item("j", "zero " * 20 + "one"))
    found = Findings(table)
    found.add(documents(["zero " * 200_000]))
    assert {row["n_documents"] for row in found.runs().to_pylist()} == {1}


def test_each_span_is_kept_with_its_first_documents_and_the_text_as_it_stands() -> None:
    table = table_of(Rule(examples=2), item("i", sentence(0, 30)))
    found = Findings(table)
    texts = [f"x {sentence(0, n).upper().replace(' ', ',  ')}. y {sentence(0, 9)} z" for n in (10, 30, 20, 30)]
    found.add(documents(texts))
    kept = found.examples().to_pylist()
    assert [(each["length"], each["row"], each["start"], each["word"]) for each in kept] == [
        (9, 0, 0, 12),
        (9, 1, 0, 32),
        (10, 0, 0, 1),
        (20, 2, 0, 1),
        (30, 1, 0, 1),
        (30, 3, 0, 1),
    ]
    assert kept[4]["text"] == sentence(0, 30).upper().replace(" ", ",  ") + "."
    assert kept[4]["document"] == "#2"


def test_an_answer_is_near_only_beside_the_question() -> None:
    asked = item("i", sentence(0, 12), answer="Forty-two apples")
    table = table_of(Rule(answer_window=5), asked)
    near = f"{sentence(0, 12)} it is forty two APPLES."
    before = f"forty two apples: {sentence(0, 12)}"
    far = f"{sentence(0, 12)} {sentence(0, 6, 'other')} forty two apples"
    other = f"{sentence(0, 12)} forty three apples"
    for text, is_near in ((near, 1), (before, 1), (far, 0), (other, 0)):
        found = Findings(table)
        found.add(documents([text]))
        assert found.segments()["n_answer_near"][0].as_py() == is_near, text
