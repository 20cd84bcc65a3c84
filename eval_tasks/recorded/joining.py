"""Recorded rows + a benchmark's items -> item id to row. Never by position.

Ids decide where they are the benchmark's. Where none is (lm-eval numbers its documents), a row is the item whose
columns it repeats, and only if there is one such item.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from eval_tasks.errors import UserError, did_you_mean
from eval_tasks.recorded.rows import RecordedRow
from eval_tasks.records import Item


def join(rows: Sequence[RecordedRow], items: Mapping[str, Item], benchmark: str) -> dict[str, RecordedRow]:
    """Item id -> its row. Raises UserError for a row of no item, of several, or for a second row of one item."""
    by_content = any(row.content for row in rows)
    ids = [row.item_id for row in rows]
    if by_content:
        ids = _ids_in_content(rows, items) or _by_content(rows, items, benchmark)
    joined: dict[str, RecordedRow] = {}
    unknown = [(item_id, row) for item_id, row in zip(ids, rows, strict=True) if item_id not in items]
    if unknown:
        item_id, row = unknown[0]
        raise UserError(
            f"{row.where}: benchmark {benchmark!r} has no item {item_id!r} ({len(unknown)} of {len(rows)} rows are of "
            f"none); {did_you_mean(item_id, items)}"
        )
    for item_id, row in zip(ids, rows, strict=True):
        if item_id in joined:
            raise UserError(f"{row.where}: item {item_id!r} is there twice; it was in {joined[item_id].where}")
        joined[item_id] = row
    return joined


def _ids_in_content(rows: Sequence[RecordedRow], items: Mapping[str, Item]) -> list[str]:
    """The ids of the first column, by name, that holds an item's id in every row and another one in each."""
    for name in sorted(set.intersection(*(set(row.content) for row in rows))):
        values = [str(row.content[name]) for row in rows if isinstance(row.content[name], str)]
        if len(values) == len(rows) == len(set(values)) and all(value in items for value in values):
            return values
    return []


def _by_content(rows: Sequence[RecordedRow], items: Mapping[str, Item], benchmark: str) -> list[str]:
    columns = sorted(
        set.intersection(*(set(row.content) for row in rows), *(set(item.fields) for item in items.values()))
    )
    if not columns:
        raise UserError(
            f"{rows[0].where}: its documents have no column of benchmark {benchmark!r}; columns there: "
            f"{', '.join(sorted(next(iter(items.values())).fields))}"
        )
    index: dict[str, list[str]] = {}
    for item_id in sorted(items):
        index.setdefault(_key(items[item_id].fields, columns), []).append(item_id)
    found = []
    for row in rows:
        same = index.get(_key(row.content, columns), [])
        if len(same) != 1:
            what = f"{len(same)} items ({', '.join(same[:3])})" if same else "no item"
            raise UserError(
                f"{row.where}: document {row.item_id} is {what} of benchmark {benchmark!r} by its columns "
                f"{', '.join(columns)}; give the rows as --format jsonl, with the benchmark's item ids"
            )
        found.append(same[0])
    return found


def _key(fields: Mapping[str, object], columns: Sequence[str]) -> str:
    return json.dumps([fields[name] for name in columns], sort_keys=True, default=str)
