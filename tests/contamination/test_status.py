"""Recorded checks -> one status per item, and the sentence of a number."""

from __future__ import annotations

import pytest

from eval_tasks.contamination import known_statuses, note
from eval_tasks.contamination.status import merged_statuses
from eval_tasks.store import Store

AT = "2026-01-02T03:04:05+00:00"


@pytest.fixture
def checked(store: Store) -> Store:
    store.catalog.save_contamination("bench", "books", "words-13@1", {"a": "clean", "b": "contaminated"}, AT)
    store.catalog.save_contamination("bench", "web", "words-13@1", {"a": "clean", "b": "clean", "c": "clean"}, AT)
    return store


def test_an_item_is_clean_only_where_every_corpus_says_so() -> None:
    assert merged_statuses([{"a": "clean", "b": "contaminated"}, {"a": "clean", "b": "clean", "c": "clean"}]) == {
        "a": "clean",
        "b": "contaminated",
        "c": "not_checkable",
    }


def test_a_corpus_that_was_not_checked_leaves_nothing_known(checked: Store) -> None:
    assert known_statuses(checked, "bench", ["books", "web"])[0] == {
        "a": "clean",
        "b": "contaminated",
        "c": "not_checkable",
    }
    assert known_statuses(checked, "bench", ["books", "code"]) == (None, ())
    assert known_statuses(checked, "bench", []) == (None, ())
    assert known_statuses(checked, "other", ["books"]) == (None, ())


def test_the_sentence_names_rate_corpora_time_and_rule(checked: Store) -> None:
    _, checks = known_statuses(checked, "bench", ["web", "books"])
    assert note(checks, 0.125) == "12.5% of items in books, web, checked 2026-01-02T03:04:05+00:00, rule words-13@1"
