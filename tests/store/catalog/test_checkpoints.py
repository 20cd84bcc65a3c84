"""Checkpoints by content."""

from __future__ import annotations

import pytest

from eval_tasks.errors import UserError
from eval_tasks.store import Store
from tests.store.samples import checkpoint


def test_a_checkpoint_comes_back(store: Store) -> None:
    store.catalog.save_checkpoint(checkpoint())
    assert store.catalog.checkpoint(checkpoint().checkpoint_id) == checkpoint()


def test_the_same_content_elsewhere_is_the_same_checkpoint_at_its_new_place(store: Store) -> None:
    store.catalog.save_checkpoint(checkpoint())
    moved = checkpoint(uri="s3://bucket/copy")
    store.catalog.save_checkpoint(moved)
    assert store.catalog.checkpoints() == [moved]


def test_one_content_in_two_training_runs_stays_in_both(store: Store) -> None:
    first, second = checkpoint(step=0), checkpoint(training_run="other", step=0)
    store.catalog.save_checkpoint(first)
    store.catalog.save_checkpoint(second)
    assert store.catalog.checkpoints("tiny") == [first]
    assert store.catalog.checkpoints("other") == [second]
    assert store.catalog.checkpoint(first.checkpoint_id) == second


def test_a_content_was_trained_on_all_that_anyone_says_it_was(store: Store) -> None:
    store.catalog.save_checkpoint(checkpoint(corpora=("web", "books")))
    store.catalog.save_checkpoint(checkpoint(training_run="adhoc", step=0, corpora=()))
    assert store.catalog.corpora_of(checkpoint().checkpoint_id) == ("books", "web")
    with pytest.raises(UserError, match="no checkpoint 'x'"):
        store.catalog.corpora_of("x")


def test_steps_are_in_numeric_order(store: Store) -> None:
    for step in (1000, 200, 3_000_000_000):
        store.catalog.save_checkpoint(checkpoint(checkpoint_id=f"{step:064d}", step=step))
    assert [c.step for c in store.catalog.checkpoints("tiny")] == [200, 1000, 3_000_000_000]


def test_an_unknown_checkpoint_is_a_users_error(store: Store) -> None:
    with pytest.raises(UserError, match=r"no checkpoint 'x'.*none are known"):
        store.catalog.checkpoint("x")
