"""Benchmark versions, suites and decision rules: instruments, which do not change under their name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from sqlalchemy import Connection, Table, not_, select

from eval_tasks.errors import UserError
from eval_tasks.records import BenchmarkVersion, DecisionRule, Suite
from eval_tasks.records.grader import JUDGE
from eval_tasks.store.catalog.part import CatalogPart, change, decode, encode, record_at, unknown
from eval_tasks.store.database import insert_of
from eval_tasks.store.tables import benchmarks, rules, suites

R = TypeVar("R", Suite, DecisionRule)
S = TypeVar("S", BenchmarkVersion, Suite, DecisionRule)

_DIGESTS = ("items_digest", "template_digest", "scorer_digest", "kind", "max_tokens", "sampling")


class Benchmarks(CatalogPart):
    """The registered instruments."""

    def save_benchmark(self, benchmark: BenchmarkVersion) -> BenchmarkVersion:
        """Register a benchmark version; gives what is stored. What moves no number may be corrected later.

        Raises UserError when that name and version are registered with other content.
        """
        key = {"name": benchmark.name, "version": benchmark.version}

        def save(connection: Connection) -> BenchmarkVersion:
            values = {"benchmark_id": benchmark.benchmark_id, "record": encode(benchmark)}
            before = _stored(connection, benchmarks, benchmark, key, values)
            if before.benchmark_id != benchmark.benchmark_id:
                raise UserError(_changed(before, benchmark))
            kept = replace(benchmark, created_at=before.created_at)
            change(connection, benchmarks, key, {"record": encode(kept)})
            return kept

        return self._database.write(save)

    def benchmark(self, name: str, version: str | None = None) -> BenchmarkVersion:
        """A benchmark by name; without `version`, the newest registered. Raises UserError with close names."""
        statement = select(benchmarks.c.record).where(benchmarks.c.name == name).order_by(benchmarks.c.seq.desc())
        known = self._find(BenchmarkVersion, statement)
        if not known:
            raise unknown("benchmark", name, (b.name for b in self.benchmarks()))
        for benchmark in known:
            if version in (None, benchmark.version):
                return benchmark
        raise unknown(f"version of benchmark {name!r}", str(version), (b.version for b in known))

    def benchmark_by_id(self, benchmark_id: str) -> BenchmarkVersion:
        """The benchmark version of that id; of two names for one content, the one registered last."""
        statement = select(benchmarks.c.record).where(benchmarks.c.benchmark_id == benchmark_id)
        found = self._find_one(BenchmarkVersion, statement.order_by(benchmarks.c.seq.desc()))
        if found is None:
            raise unknown("benchmark id", benchmark_id, (b.benchmark_id for b in self.benchmarks()))
        return found

    def benchmarks_by_id(self, benchmark_ids: Sequence[str]) -> list[BenchmarkVersion]:
        """The benchmark versions of those ids, in that order, by one query. Raises UserError for an unknown one."""
        statement = select(benchmarks.c.record).where(benchmarks.c.benchmark_id.in_(list(benchmark_ids)))
        found = {b.benchmark_id: b for b in self._find(BenchmarkVersion, statement.order_by(benchmarks.c.seq))}
        return [found[i] if i in found else self.benchmark_by_id(i) for i in benchmark_ids]

    def benchmarks(self) -> list[BenchmarkVersion]:
        """All benchmark versions, by name, in order of registration; not the questions that judges are asked."""
        statement = select(benchmarks.c.record).where(not_(benchmarks.c.name.startswith(JUDGE)))
        return self._find(BenchmarkVersion, statement.order_by(benchmarks.c.name, benchmarks.c.seq))

    def save_suite(self, suite: Suite) -> Suite:
        """Register a suite. Raises UserError when that name and version are registered with other entries."""

        def save(connection: Connection) -> Suite:
            return _register(connection, suites, suite, {"name": suite.name, "version": suite.version}, "suite_id")

        return self._database.write(save)

    def suite(self, name: str, version: str | None = None) -> Suite:
        """A suite by name; without `version`, the newest registered. Raises UserError with close names."""
        statement = select(suites.c.record).where(suites.c.name == name).order_by(suites.c.seq.desc())
        known = self._find(Suite, statement)
        if not known:
            raise unknown("suite", name, (s.name for s in self.suites()))
        for suite in known:
            if version in (None, suite.version):
                return suite
        raise unknown(f"version of suite {name!r}", str(version), (s.version for s in known))

    def suite_by_id(self, suite_id: str) -> Suite:
        """The suite of that id. Raises UserError when there is none."""
        statement = select(suites.c.record).where(suites.c.suite_id == suite_id).order_by(suites.c.seq.desc())
        found = self._find_one(Suite, statement)
        if found is None:
            raise unknown("suite id", suite_id, (s.suite_id for s in self.suites()))
        return found

    def suites(self) -> list[Suite]:
        """All suites, by name, in order of registration."""
        return self._find(Suite, select(suites.c.record).order_by(suites.c.name, suites.c.seq))

    def save_rule(self, rule: DecisionRule) -> DecisionRule:
        """Register a decision rule; gives what is stored. The same rule again keeps its first time of registration.

        Raises UserError when the name stands for another rule: a rule is not changed once it may have been used.
        """

        def save(connection: Connection) -> DecisionRule:
            return _register(connection, rules, rule, {"name": rule.name}, "rule_id")

        return self._database.write(save)

    def rule(self, name: str) -> DecisionRule:
        """A decision rule by name. Raises UserError with close names."""
        found = self._find_one(DecisionRule, select(rules.c.record).where(rules.c.name == name))
        if found is None:
            raise unknown("decision rule", name, (r.name for r in self.rules()))
        return found

    def rules(self) -> list[DecisionRule]:
        """All decision rules, by name."""
        return self._find(DecisionRule, select(rules.c.record).order_by(rules.c.name))


def _stored(connection: Connection, table: Table, record: S, key: dict[str, str], values: dict[str, str]) -> S:
    """The record of that key: `record`, now inserted, unless one is there. Of two who register at once one is first."""
    statement = insert_of(connection, table).values({**key, **values})
    connection.execute(statement.on_conflict_do_nothing(index_elements=list(key)))
    text = record_at(connection, table, key)
    return record if text is None else decode(type(record), text)


def _register(connection: Connection, table: Table, record: R, key: dict[str, str], id_name: str) -> R:
    """Insert `record`, or give the stored one of that key when its id is the same."""
    identity = getattr(record, id_name)
    before = _stored(connection, table, record, key, {id_name: identity, "record": encode(record)})
    if getattr(before, id_name) != identity:
        where = " ".join(f"{name} {value!r}" for name, value in key.items())
        changed = [name for name in _fields(record) if getattr(record, name) != getattr(before, name)]
        way_out = "version" if "version" in key else "name"
        raise UserError(
            f"{where} is registered with other content ({', '.join(changed)} differ); choose a new {way_out}"
        )
    return before


def _fields(record: Suite | DecisionRule) -> list[str]:
    return [name for name in type(record).__slots__ if name != "registered_at"]


def _changed(before: BenchmarkVersion, after: BenchmarkVersion) -> str:
    changes = [
        f"{name} {getattr(before, name)} is now {getattr(after, name)}"
        for name in _DIGESTS
        if getattr(before, name) != getattr(after, name)
    ]
    return (
        f"benchmark {after.name!r} version {after.version!r} is registered with other content: {'; '.join(changes)}; "
        "choose a new version"
    )
