"""The gate: open, blocked, and blocked elsewhere."""

from __future__ import annotations

from dataclasses import replace

from eval_tasks.gate import gate
from eval_tasks.store import Store
from tests.store.samples import NOW, run

OURS, THEIRS = "a" * 32, "b" * 32


def ran(store: Store, number: int, environment: str, fingerprint: str | None) -> None:
    store.catalog.create_run(replace(run(number), environment=environment, env_fingerprint=fingerprint))


def test_without_a_block_it_is_open(store: Store) -> None:
    assert gate(store, environment="local").open
    ran(store, 1, "local", OURS)
    assert gate(store, environment="local").reason == "no open block"


def test_a_block_on_this_environments_fingerprint_holds_and_says_why(store: Store) -> None:
    ran(store, 1, "local", OURS)
    block = store.catalog.open_block(OURS, "rows differ in 3 items", NOW)
    result = gate(store, environment="local")
    assert not result.open
    assert result.reason == f"block {block} on {OURS[:12]}: rows differ in 3 items; explain it to let runs go on"


def test_an_explained_block_holds_nothing(store: Store) -> None:
    ran(store, 1, "local", OURS)
    block = store.catalog.open_block(OURS, "rows differ", NOW)
    store.catalog.explain_block(block, "ada", "driver rolled back", NOW)
    assert gate(store, environment="local").open


def test_a_block_on_another_environment_does_not_hold_this_one(store: Store) -> None:
    ran(store, 1, "local", OURS)
    ran(store, 2, "gpu", THEIRS)
    store.catalog.open_block(THEIRS, "rows differ", NOW)
    assert gate(store, environment="local").reason == "1 open block(s), none on environment 'local'"
    assert not gate(store, environment="gpu").open


def test_an_environment_that_has_reported_nothing_yet_is_held_by_any_block(store: Store) -> None:
    ran(store, 1, "gpu", THEIRS)
    ran(store, 2, "new", None)
    store.catalog.open_block(THEIRS, "rows differ", NOW)
    assert not gate(store, environment="new").open
    assert not gate(store, environment="never-seen").open


def test_an_environment_whose_fingerprint_changed_is_held_by_a_block_on_either(store: Store) -> None:
    ran(store, 1, "local", THEIRS)
    ran(store, 2, "local", OURS)
    store.catalog.open_block(THEIRS, "rows differ", NOW)
    assert not gate(store, environment="local").open


def test_runs_of_other_environments_do_not_hide_this_ones(store: Store) -> None:
    ran(store, 1, "local", OURS)
    for number in range(2, 70):
        ran(store, number, "busy", THEIRS)
    store.catalog.open_block("c" * 32, "rows differ", NOW)
    assert gate(store, environment="local").open
