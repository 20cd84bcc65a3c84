"""The gate: open, blocked, and blocked elsewhere."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sqlalchemy import event

from eval_tasks.gate import GateResult, Waiting, gate
from eval_tasks.records import Baseline
from eval_tasks.store import Store
from tests.store.samples import NOW, run

OURS, THEIRS = "a" * 32, "b" * 32


def ran(store: Store, number: int, environment: str, fingerprint: str | None) -> None:
    store.catalog.create_run(replace(run(number), environment=environment, env_fingerprint=fingerprint))
    if fingerprint is not None:
        store.catalog.see_environment(environment, fingerprint, at(number))


def at(second: int) -> datetime:
    return datetime(2026, 1, 31, 12, tzinfo=UTC) + timedelta(seconds=second)


def ask(store: Store, ticket: str, place: str, second: int) -> GateResult:
    return gate(store, environment="local", waiting=Waiting(ticket=ticket, place=place, now=at(second)))


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


def test_waiting_runs_are_let_go_in_the_order_of_their_places(store: Store) -> None:
    ran(store, 1, "local", OURS)
    block = store.catalog.open_block(OURS, "rows differ", at(1))
    for second, ticket in ((2, "c"), (3, "a"), (4, "b")):
        assert not ask(store, ticket, ticket, second).open
    store.catalog.explain_block(block, "ada", "driver rolled back", at(5))
    assert ask(store, "b", "b", 6).reason == "no open block; a was here before and goes first"
    assert not ask(store, "d", "d", 6).open, "one that comes now does not go before those that waited"
    for ticket in "abcd":
        assert ask(store, ticket, ticket, 7).open
    assert store.catalog.tickets("local") == []


def test_a_run_that_was_ended_while_it_waited_holds_up_nobody_for_long(store: Store) -> None:
    ran(store, 1, "local", OURS)
    block = store.catalog.open_block(OURS, "rows differ", at(1))
    assert not ask(store, "dead", "1", 2).open
    store.catalog.explain_block(block, "ada", "driver rolled back", at(1000))
    assert not ask(store, "alive", "2", 1001).open, "it may only be late to ask"
    assert ask(store, "alive", "2", 1200).open


def test_a_run_that_waits_elsewhere_is_no_reason_to_wait_here(store: Store) -> None:
    store.catalog.hold_ticket("a", "gpu", "1", at(1))
    assert ask(store, "b", "2", 2).open


def test_a_refused_fingerprint_holds_until_the_machines_are_changed_back(store: Store) -> None:
    ran(store, 1, "local", OURS)
    ran(store, 2, "local", THEIRS)
    refused = Baseline(
        env_fingerprint=THEIRS, suite_id="s", run_id="r", status="refused", recorded_at=NOW, decided_by="ada"
    )
    store.catalog.save_baseline(refused)
    assert gate(store, environment="local").reason.startswith(f"ada refused fingerprint {THEIRS[:12]}")
    ran(store, 3, "local", OURS)
    assert gate(store, environment="local").open


def test_the_gate_is_quick_while_a_block_stands_on_a_busy_environment(store: Store) -> None:
    """Nothing that grows with the number of runs is read."""
    ran(store, 1, "local", OURS)
    store.catalog.open_block(OURS, "rows differ", at(1))
    statements: list[str] = []
    event.listen(store._database.engine, "before_cursor_execute", lambda *a: statements.append(a[2]))
    assert not gate(store, environment="local").open
    assert not [s for s in statements if " runs" in s or " shards" in s]
