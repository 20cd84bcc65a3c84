"""What a comparison reads: its own two runs, whatever else the archive holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import event

from eval_tasks.aggregate import aggregate
from eval_tasks.compare import compare
from eval_tasks.store import Store
from eval_tasks.store.files import FileStore
from tests.compare.arms import cells
from tests.compare.stored import scores_of, stored_run
from tests.store.samples import benchmark

NAMES = ("one", "two", "three")
BENCHES = [benchmark(name=name, items_digest=f"{k}" * 64) for k, name in enumerate(NAMES)]
A, B = cells(40, 12, 3, 45)


def stored(store: Store, number: int, values: Any) -> str:
    run = stored_run(store, number, *[(bench, scores_of(bench, values)) for bench in BENCHES])
    aggregate(store, run.run_id)
    return run.run_id


@contextmanager
def watched(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, list[str]]]:
    """Statements that the catalog runs with the rows it gives, and files that are opened or read."""
    seen: dict[str, list[str]] = {"statements": [], "files": [], "rows": []}
    engine = store.catalog._database.engine
    find = type(store.catalog)._find

    def counted(catalog: Any, record_type: Any, statement: Any) -> Any:
        found = find(catalog, record_type, statement)
        seen["rows"] += [record_type.__name__] * len(found)
        return found

    def executed(conn: Any, cursor: Any, statement: str, *_: Any) -> None:
        seen["statements"].append(statement)

    for name in ("open", "read"):
        original = getattr(FileStore, name)

        def opened(self: FileStore, path: str, _original: Any = original) -> Any:
            seen["files"].append(path)
            return _original(self, path)

        monkeypatch.setattr(FileStore, name, opened)
    monkeypatch.setattr(type(store.catalog), "_find", counted)
    event.listen(engine, "before_cursor_execute", executed)
    yield seen
    event.remove(engine, "before_cursor_execute", executed)
    monkeypatch.undo()


def test_other_runs_cost_a_comparison_no_query_no_row_and_no_file(store, monkeypatch):
    runs = [stored(store, number, values) for number, values in ((1, A), (2, B))]
    compare(store, *runs)
    with watched(store, monkeypatch) as alone:
        first = compare(store, *runs)
    for number in range(3, 23):
        stored(store, number, A)
        store.catalog.save_comparison(replace(first, run_a=f"{number:032x}"))
    with watched(store, monkeypatch) as among:
        second = compare(store, *runs)
    assert second == first and among == alone
    own = {f"scores/{run}/" for run in runs}
    scores = [name for name in among["files"] if name.startswith("scores/")]
    assert scores and all(any(name.startswith(folder) for folder in own) for name in scores)
    assert not [name for name in among["files"] if name.startswith("responses/")], "no output is read"


def test_queries_do_not_grow_with_the_benchmarks_of_a_run_beyond_their_contamination(store, monkeypatch):
    runs = [stored(store, number, values) for number, values in ((1, A), (2, B))]
    with watched(store, monkeypatch) as seen:
        compare(store, *runs)
    assert len([s for s in seen["statements"] if "FROM benchmarks" in s]) == 2
    assert len(seen["statements"]) <= 30


def test_the_newest_runs_are_listed_without_reading_the_others(store, monkeypatch):
    for number in range(1, 26):
        stored_run(store, number, (BENCHES[0], scores_of(BENCHES[0], A)))
    with watched(store, monkeypatch) as seen:
        found = store.catalog.runs(limit=5)
    assert len(found) == 5 and seen["rows"] == ["Run"] * 5 and not seen["files"]
    asked = "EXPLAIN QUERY PLAN SELECT record FROM runs ORDER BY created_at DESC, seq DESC LIMIT 5"
    if store.catalog._database.dialect == "sqlite":
        plan = store.catalog._database.read(lambda connection: connection.exec_driver_sql(asked).all())
        assert "ix_runs_created_at" in " ".join(map(str, plan))
