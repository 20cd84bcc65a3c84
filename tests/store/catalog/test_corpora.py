"""Corpora, contamination checks and graders."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eval_tasks.errors import DataError, UserError
from eval_tasks.store import Corpus, Grader, Store
from tests.store.samples import NOW

WEB = Corpus(name="web", uri="s3://corpora/web", created_at=NOW)
JUDGE = Grader(name="judge", version="1", kind="model", digest="d" * 64, created_at=NOW, agreement={"kappa": 0.8})


def test_a_corpus_comes_back_by_name(store: Store) -> None:
    store.catalog.save_corpus(WEB)
    indexed = replace(WEB, index_digest="i" * 64, n_documents=10)
    store.catalog.save_corpus(indexed)
    assert store.catalog.corpora() == [indexed]
    assert store.catalog.corpus("web") == indexed
    with pytest.raises(UserError, match=r"no corpus 'wob'.*close: 'web'"):
        store.catalog.corpus("wob")


def test_the_latest_check_against_each_corpus(store: Store) -> None:
    store.catalog.save_contamination("b", "web", "ngram13", {"i1": "clean"}, "2026-01-01T00:00:00+00:00")
    store.catalog.save_contamination("b", "web", "ngram8", {"i1": "contaminated"}, "2026-01-02T00:00:00+00:00")
    store.catalog.save_contamination("b", "books", "ngram8", {"i1": "not_checkable"}, "2026-01-01T00:00:00+00:00")
    store.catalog.save_contamination("other", "web", "ngram8", {"i1": "clean"}, "2026-01-03T00:00:00+00:00")
    assert [(c.corpus, c.rule, dict(c.rows)) for c in store.catalog.contamination("b")] == [
        ("books", "ngram8", {"i1": "not_checkable"}),
        ("web", "ngram8", {"i1": "contaminated"}),
    ]
    assert [c.corpus for c in store.catalog.contamination("b", ["web", "code"])] == ["web"]
    assert store.catalog.contamination("b", ["code"]) == []
    store.catalog.save_contamination("b", "web", "ngram13", {"i1": "clean"}, "2026-01-04T00:00:00+00:00")
    assert store.catalog.contamination("b", ["web"])[0].rule == "ngram13"


def test_a_status_that_does_not_exist_is_refused(store: Store) -> None:
    store.catalog.save_contamination("b", "web", "r", {"i": "clean"}, NOW)
    with pytest.raises(DataError, match="rows"):
        store.catalog.save_contamination("b", "web", "r", {"i": "dirty"}, NOW)  # type: ignore[dict-item]
    assert dict(store.catalog.contamination("b")[0].rows) == {"i": "clean"}


def test_a_grader_version_keeps_its_digest(store: Store) -> None:
    store.catalog.save_grader(JUDGE)
    adopted = replace(JUDGE, adopted=True)
    store.catalog.save_grader(adopted)
    second = replace(JUDGE, version="2", digest="e" * 64)
    store.catalog.save_grader(second)
    with pytest.raises(UserError, match="'judge@1' is registered with digest"):
        store.catalog.save_grader(replace(JUDGE, digest="f" * 64))
    assert store.catalog.graders() == [adopted, second]
    assert store.catalog.grader("judge") == second
    assert store.catalog.grader("judge", "1") == adopted
    with pytest.raises(UserError, match=r"no grader 'juge'.*close: 'judge'"):
        store.catalog.grader("juge")
    with pytest.raises(UserError, match="no version of grader 'judge' '3'"):
        store.catalog.grader("judge", "3")
