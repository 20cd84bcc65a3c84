"""Benchmarks, suites and rules: instruments that do not change under their name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from eval_tasks.errors import UserError
from eval_tasks.records import DecisionRule, Suite, SuiteEntry
from eval_tasks.store import Store
from eval_tasks.store.catalog import benchmarks, part
from eval_tasks.store.database import insert_of
from tests.store.samples import NOW, benchmark

SUITE = Suite(
    name="health", version="1", tier="health", entries=(SuiteEntry(benchmark="c", version="1", benchmark_id="b" * 32),)
)
RULE = DecisionRule(name="ship", kind="superiority", metric="acc", components={"colours": 1.0}, registered_at=NOW)


def test_a_benchmark_comes_back_by_name_version_and_id(store: Store) -> None:
    first, second = benchmark(version="10"), benchmark(version="9", items_digest="j" * 64)
    store.catalog.save_benchmark(first)
    store.catalog.save_benchmark(second)
    assert store.catalog.benchmark("colours") == second  # registered last, whatever its version sorts as
    assert store.catalog.benchmark("colours", "10") == first
    assert store.catalog.benchmark_by_id(first.benchmark_id) == first
    assert store.catalog.benchmarks() == [first, second]


@pytest.mark.parametrize("digest", ["items_digest", "template_digest", "scorer_digest"])
def test_changed_content_under_one_version_is_refused_and_named(store: Store, digest: str) -> None:
    store.catalog.save_benchmark(benchmark())
    with pytest.raises(UserError) as caught:
        store.catalog.save_benchmark(benchmark(**{digest: "x" * 64}))
    assert f"{digest} {getattr(benchmark(), digest)} is now {'x' * 64}" in str(caught.value)
    assert "choose a new version" in str(caught.value)
    others = {"items_digest", "template_digest", "scorer_digest"} - {digest}
    assert not [name for name in others if name in str(caught.value)]
    assert store.catalog.benchmarks() == [benchmark()]


def test_what_moves_no_number_may_be_corrected(store: Store) -> None:
    store.catalog.save_benchmark(benchmark())
    corrected = benchmark(plausible_range={"acc": (0.1, 1.0)}, created_at="2027-01-01T00:00:00+00:00")
    assert store.catalog.save_benchmark(corrected) == replace(corrected, created_at=NOW)
    assert store.catalog.benchmark("colours").plausible_range == {"acc": (0.1, 1.0)}


def test_unknown_instruments_are_answered_with_close_names(store: Store) -> None:
    store.catalog.save_benchmark(benchmark())
    store.catalog.save_suite(SUITE)
    store.catalog.save_rule(RULE)
    with pytest.raises(UserError, match=r"no benchmark 'colors'.*close: 'colours'"):
        store.catalog.benchmark("colors")
    with pytest.raises(UserError, match=r"no version of benchmark 'colours' '2'.*known: 1"):
        store.catalog.benchmark("colours", "2")
    with pytest.raises(UserError, match=r"no suite 'heath'.*close: 'health'"):
        store.catalog.suite("heath")
    with pytest.raises(UserError, match="no version of suite 'health' '2'"):
        store.catalog.suite("health", "2")
    with pytest.raises(UserError, match=r"no decision rule 'shop'.*close: 'ship'"):
        store.catalog.rule("shop")
    with pytest.raises(UserError, match="no benchmark id"):
        store.catalog.benchmark_by_id("0" * 32)
    with pytest.raises(UserError, match="no suite id"):
        store.catalog.suite_by_id("0" * 32)


def test_of_two_processes_that_register_at_once_one_is_first(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL lets another process insert at any point before ours; here it always does so just before."""
    others = replace(SUITE, entries=()), benchmark(items_digest="j" * 64)

    def insert_second(connection: Any, table: Any) -> Any:
        suite, bench = others
        row = {"suites": {"suite_id": suite.suite_id}, "benchmarks": {"benchmark_id": bench.benchmark_id}}[table.name]
        record = {"suites": suite, "benchmarks": bench}[table.name]
        key = {"name": record.name, "version": record.version}
        connection.execute(insert_of(connection, table).values({**key, **row, "record": part.encode(record)}))
        return insert_of(connection, table)

    monkeypatch.setattr(benchmarks, "insert_of", insert_second)
    with pytest.raises(UserError, match="entries differ"):
        store.catalog.save_suite(SUITE)
    with pytest.raises(UserError, match="items_digest"):
        store.catalog.save_benchmark(benchmark())
    assert store.catalog.save_suite(others[0]) == others[0]


def test_a_suite_keeps_its_entries_under_one_version(store: Store) -> None:
    assert store.catalog.save_suite(SUITE) == SUITE
    assert store.catalog.save_suite(SUITE) == SUITE
    with pytest.raises(UserError, match=r"name 'health' version '1'.*entries differ.*new version"):
        store.catalog.save_suite(replace(SUITE, entries=()))
    newer = replace(SUITE, version="2", entries=())
    store.catalog.save_suite(newer)
    assert store.catalog.suite("health") == newer
    assert store.catalog.suite("health", "1") == SUITE
    assert store.catalog.suite_by_id(SUITE.suite_id) == SUITE
    assert store.catalog.suites() == [SUITE, newer]


def test_a_rule_keeps_its_first_registration(store: Store) -> None:
    store.catalog.save_rule(RULE)
    again = replace(RULE, registered_at="2027-01-01T00:00:00+00:00")
    assert store.catalog.save_rule(again) == RULE
    with pytest.raises(UserError, match=r"name 'ship'.*alpha.*new name"):
        store.catalog.save_rule(replace(RULE, alpha=0.1))
    assert store.catalog.rule("ship") == RULE
    assert store.catalog.rules() == [RULE]
