"""Rows of two computations of the same items -> which differ, and the first differing field of the first ones.

Bit for bit: prompts, token ids, outputs, logprobs, flags, and scores. Only latency may differ. Reads stored rows; knows
no engine and judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from eval_tasks.records import BenchmarkVersion, Response, RowDifference, RowsComparison
from eval_tasks.store.identity import row_digest

if TYPE_CHECKING:
    from eval_tasks.store import Store

SHOWN_ITEMS = 10

_NO_ROW = "(no row)"
_SHOWN_CHARS = 120
# What a reader should see first where several differ: what went in, then what came out, then what was made of it.
_FIRST = ("prompt_digest", "status", "reason", "output_ids", "logprobs", "token_logprobs", "samples", "output")
_FIELDS = (*_FIRST, *sorted(f.name for f in fields(Response) if f.name not in (*_FIRST, "latency_ms")))
_SCORE_COLUMNS = ("item_id", "metric", "value", "weight", "status", "reason", "extracted", "detail", "sample_values")


def compare_rows(
    store: Store, run_a: str, run_b: str, benchmarks: Sequence[BenchmarkVersion], shown: int = SHOWN_ITEMS
) -> RowsComparison:
    """All rows of two closed and graded runs of the same benchmarks. A row that one of them lacks differs."""
    n_items = n_differing = 0
    first: list[RowDifference] = []
    for benchmark in benchmarks:
        n, ids = _differing_items(store, (run_a, run_b), benchmark)
        n_items += n
        n_differing += len(ids)
        wanted = ids[: max(0, shown - len(first))]
        first += _differences(store, (run_a, run_b), benchmark, wanted)
    return RowsComparison(run_a=run_a, run_b=run_b, n_items=n_items, n_differing=n_differing, first=tuple(first))


def first_difference(benchmark: str, a: Response, b: Response) -> RowDifference | None:
    """The first field in which two rows of one item differ; None when every bit is the same."""
    if row_digest(a) == row_digest(b):
        return None
    for name in _FIELDS:
        found = _at_first(name, getattr(a, name), getattr(b, name))
        if found is not None:
            return RowDifference(benchmark=benchmark, item_id=a.item_id, field=found[0], a=found[1], b=found[2])
    return RowDifference(benchmark=benchmark, item_id=a.item_id, field="row_digest", a=row_digest(a), b=row_digest(b))


def _differing_items(store: Store, runs: tuple[str, str], benchmark: BenchmarkVersion) -> tuple[int, list[str]]:
    """How many items there are, and the ids of those whose response or any of whose scores differ, sorted."""
    tables = [_digests(store, run, benchmark.benchmark_id) for run in runs]
    ids = set(_unlike(*tables))
    ids |= {item_id for item_id, _ in _differing_scores(store, runs, benchmark)}
    n = pc.count_distinct(pa.concat_tables([t.select(["item_id"]) for t in tables])["item_id"]).as_py()
    return n, sorted(ids)


def _digests(store: Store, run_id: str, benchmark_id: str) -> pa.Table:
    if benchmark_id not in store.responses.benchmarks(run_id):  # every row of it was lost
        return pa.table({"item_id": pa.array([], pa.string()), "row_digest": pa.array([], pa.string())})
    return store.responses.read(run_id, benchmark_id, columns=["item_id", "row_digest"])


def _unlike(a: pa.Table, b: pa.Table) -> list[str]:
    if a.equals(b):
        return []
    joined = a.join(b, "item_id", join_type="full outer", right_suffix="_b")
    same = pc.fill_null(pc.equal(joined["row_digest"], joined["row_digest_b"]), False)
    return [str(item_id) for item_id in joined.filter(pc.invert(same))["item_id"].to_pylist()]


def _differing_scores(
    store: Store, runs: tuple[str, str], benchmark: BenchmarkVersion, item_ids: Sequence[str] | None = None
) -> Iterator[tuple[str, RowDifference]]:
    if len({store.scores.digest(run, benchmark.benchmark_id) for run in runs}) == 1:
        return
    tables = [_scores(store, run, benchmark.benchmark_id, item_ids) for run in runs]
    for key in sorted({*tables[0], *tables[1]}):
        left, right = (table.get(key) for table in tables)
        if left == right:
            continue
        item_id, metric = key
        a, b = (_NO_ROW if row is None else _score_text(row) for row in (left, right))
        yield item_id, RowDifference(benchmark=benchmark.name, item_id=item_id, field=f"score {metric}", a=a, b=b)


def _scores(
    store: Store, run_id: str, benchmark_id: str, item_ids: Sequence[str] | None
) -> dict[tuple[str, str], Mapping[str, Any]]:
    table = store.scores.read(run_id, benchmark_id, columns=list(_SCORE_COLUMNS))
    if item_ids is not None:
        table = table.filter(pc.is_in(table["item_id"], value_set=pa.array(item_ids, pa.string())))
    return {(row["item_id"], row["metric"]): row for row in table.to_pylist()}


def _score_text(row: Mapping[str, Any]) -> str:
    said = ", ".join(str(row[name]) for name in ("status", "extracted") if row[name] not in (None, "", "ok"))
    return f"{_shown(row['value'])}{f' ({said})' if said else ''}"


def _differences(
    store: Store, runs: tuple[str, str], benchmark: BenchmarkVersion, item_ids: Sequence[str]
) -> list[RowDifference]:
    """The first difference of each of these items."""
    if not item_ids:
        return []
    scores = dict(reversed(list(_differing_scores(store, runs, benchmark, item_ids))))
    rows = [_rows(store, run, benchmark.benchmark_id, item_ids) for run in runs]
    found = []
    for item_id in item_ids:
        a, b = rows[0].get(item_id), rows[1].get(item_id)
        difference = scores.get(item_id)
        if a is None or b is None:
            texts = (_NO_ROW if row is None else _shown(row_digest(row)) for row in (a, b))
            left, right = texts
            difference = RowDifference(benchmark=benchmark.name, item_id=item_id, field="row", a=left, b=right)
        else:
            difference = first_difference(benchmark.name, a, b) or difference
        if difference is not None:
            found.append(difference)
    return found


def _rows(store: Store, run_id: str, benchmark_id: str, item_ids: Sequence[str]) -> dict[str, Response]:
    present = set(_digests(store, run_id, benchmark_id)["item_id"].to_pylist())
    wanted = [item_id for item_id in item_ids if item_id in present]
    return {row.item_id: row for row in store.responses.rows(run_id, benchmark_id, wanted)} if wanted else {}


def _at_first(name: str, a: Any, b: Any) -> tuple[str, str, str] | None:
    """(path, a, b) where two values first differ, None where they do not; numbers by their bits."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        for index, (left, right) in enumerate(zip(a, b, strict=False)):
            found = _at_first(f"{name}[{index}]", left, right)
            if found is not None:
                return found
        return None if len(a) == len(b) else (f"{name} (length)", str(len(a)), str(len(b)))
    if _bits(a) == _bits(b):
        return None
    if isinstance(a, str) and isinstance(b, str):
        start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
        start = max(0, start - _SHOWN_CHARS // 4)
        return name, _shown(a[start:]), _shown(b[start:])
    return name, _shown(a), _shown(b)


def _bits(value: Any) -> Any:
    return value.hex() if isinstance(value, float) else value


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value!r} ({value.hex()})"
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."
