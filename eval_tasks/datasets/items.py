"""Rows of a pinned source -> items and few-shot items of a benchmark, checked. Renders no prompt.

A choice item's `target` is the index of its gold choice (or a list of them), whether the data gives an index, the
choice's text or its letter. Ids are text, unique, and never a row number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eval_tasks.datasets.rows import Row
from eval_tasks.datasets.source import Rows, read_source
from eval_tasks.digests import digest_parts, digest_value, short_id
from eval_tasks.errors import UserError, did_you_mean
from eval_tasks.records import Item
from eval_tasks.registry import BenchmarkSpec, Rendering, is_template, literal, render_choices
from eval_tasks.store import HubFiles

_NAMED_AT_MOST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A benchmark's data. `items` by item_id; `few_shot` in file order, with ids that keep it; digests of the files."""

    items: list[Item]
    few_shot: list[Item]
    source_blake3: str
    few_shot_blake3: str | None


def load_items(spec: BenchmarkSpec, base: Path) -> list[Item]:
    """The items of a benchmark, by item_id; see `load_dataset`."""
    return load_dataset(spec, base).items


def load_dataset(
    spec: BenchmarkSpec, base: Path, *, offline: bool | None = None, kept: HubFiles | None = None
) -> Dataset:
    """Items and few-shot items. `base` is the folder of the benchmark's YAML file, `kept` the store's hub files.

    Raises DriftError, UserError or InfraError as `read_source` does, and UserError for a missing column, a missing or
    doubled id and a gold answer that is no choice.
    """
    table = read_source(spec.source, base, offline=offline, kept=kept)
    _check_columns(spec, table, _needed_columns(spec))
    items = _with_ids([_item(spec, row, f"{table.name}, row {n}") for n, row in enumerate(table.rows, 1)], spec)
    _check_unique(spec, table.name, items)
    shots, shots_blake3 = _few_shot(spec, base, table, offline, kept)
    return Dataset(
        items=sorted(items, key=lambda item: item.item_id),
        few_shot=shots,
        source_blake3=table.blake3,
        few_shot_blake3=shots_blake3,
    )


def items_digest(items: Iterable[Item]) -> str:
    """Digest of the items by item_id: independent of file format, row order and column order."""
    rows = sorted([i.item_id, digest_value([dict(i.fields), i.target, i.stratum, i.cluster])] for i in items)
    return digest_parts(part for row in rows for part in row)


def _few_shot(
    spec: BenchmarkSpec, base: Path, own: Rows, offline: bool | None, kept: HubFiles | None
) -> tuple[list[Item], str | None]:
    """Few-shot rows, numbered so that sorting by id keeps the file's order (which ``first`` means)."""
    if spec.few_shot is None:
        return [], None
    pinned = spec.few_shot.source
    table = read_source(pinned, base, offline=offline, kept=kept) if pinned else own
    needed = [("few_shot.match", spec.few_shot.match), ("item.target", _column(spec.item.target))]
    _check_columns(spec, table, needed if spec.kind == "choice" else needed[:1])
    shots = []
    for n, row in enumerate(table.rows):
        where = f"{table.name}, row {n + 1}"
        shots.append(Item(item_id=f"{n:08d}", fields=row, target=target_of(spec, row, f"{n:08d}", where)))
    return shots, table.blake3 if pinned else None


def _needed_columns(spec: BenchmarkSpec) -> list[tuple[str, str | None]]:
    """(field of the YAML file, column it names)."""
    choices = _column(spec.prompt.choices) if isinstance(spec.prompt.choices, str) else None
    return [
        *(("item.id", column) for column in spec.item.id_columns),
        ("item.target", _column(spec.item.target)),
        ("item.stratum", spec.item.stratum),
        ("item.cluster", spec.item.cluster),
        ("item.category", spec.item.category),
        ("prompt.choices", choices),
        ("few_shot.match", spec.few_shot.match if spec.few_shot else None),
    ]


def _column(name: str | None) -> str | None:
    return None if name is None or is_template(name) else name


def _check_columns(spec: BenchmarkSpec, table: Rows, needed: Sequence[tuple[str, str | None]]) -> None:
    known = {column for row in table.rows for column in row}
    for field, column in needed:
        if column is not None and column not in known:
            raise UserError(
                f"benchmark {spec.name!r}: {table.name} has no column {column!r} ({field}); "
                f"{did_you_mean(column, known)}"
            )


def _item(spec: BenchmarkSpec, row: Row, where: str) -> Item:
    item_id = _item_id(spec, row, where)
    return Item(
        item_id=item_id,
        fields=row,
        target=target_of(spec, row, item_id, where),
        metadata=_metadata(spec, row, where),
        stratum=_text(row, spec.item.stratum),
        cluster=_text(row, spec.item.cluster),
    )


def _with_ids(items: list[Item], spec: BenchmarkSpec) -> list[Item]:
    """Where ids are digests, the second of equal rows gets one of its own (MMLU repeats 27 rows): which of them it is
    cannot matter, since nothing tells them apart.
    """
    if spec.item.id_columns:
        return items
    seen: Counter[str] = Counter()
    numbered = []
    for item in items:
        seen[item.item_id] += 1
        n = seen[item.item_id]
        numbered.append(item if n == 1 else replace(item, item_id=short_id(digest_value([item.item_id, n]))))
    return numbered


def _item_id(spec: BenchmarkSpec, row: Row, where: str) -> str:
    if not spec.item.id_columns:
        return short_id(digest_value(row))
    parts = []
    for column in spec.item.id_columns:
        value = row.get(column)
        if isinstance(value, bool | float) or not isinstance(value, str | int) or not str(value).strip():
            raise UserError(
                f"{where}: id column {column!r} holds {value!r}; an id is text or a whole number, never empty"
            )
        parts.append(str(value))
    return "/".join(parts)


def _check_unique(spec: BenchmarkSpec, name: str, items: Sequence[Item]) -> None:
    counts = Counter(item.item_id for item in items)
    twice = [item_id for item_id, n in counts.items() if n > 1]
    if twice:
        shown = ", ".join(repr(item_id) for item_id in twice[:_NAMED_AT_MOST])
        more = f" and {len(twice) - _NAMED_AT_MOST} more" if len(twice) > _NAMED_AT_MOST else ""
        column = "/".join(spec.item.id_columns)
        raise UserError(f"{name}: {len(twice)} item ids stand more than once in {column}: {shown}{more}")


def _metadata(spec: BenchmarkSpec, row: Row, where: str) -> dict[str, str]:
    """The item's category, by its column's value, or by the group that the value is listed in."""
    value = _text(row, spec.item.category)
    if value is None:
        return {}
    if not spec.item.categories:
        return {"category": value}
    for category, values in spec.item.categories.items():
        if value in values:
            return {"category": category}
    known = [known for values in spec.item.categories.values() for known in values]
    raise UserError(f"{where}: {value!r} is in none of item.categories; {did_you_mean(value, known)}")


def _text(row: Row, column: str | None) -> str | None:
    value = row.get(column) if column else None
    return None if value is None else str(value)


def target_of(spec: BenchmarkSpec, row: Row, item_id: str, where: str) -> Any:
    """What `Item.target` becomes; of a choice the index of the gold one, or several. Raises UserError for no choice."""
    rendering = Rendering(benchmark=spec.name, item_id=item_id, fields=row)
    value = _target_value(spec, row, rendering)
    if spec.kind != "choice":
        return value
    texts = render_choices(spec.prompt.choices, rendering)
    if isinstance(value, list) and value:
        return [_gold_index(gold, texts, where) for gold in value]
    return _gold_index(value, texts, where)


def _target_value(spec: BenchmarkSpec, row: Row, rendering: Rendering) -> Any:
    """The column's value, or what the template gives: a list where it writes one, of a choice also an index."""
    if spec.item.target is None or not is_template(spec.item.target):
        return row.get(spec.item.target) if spec.item.target else None
    text = rendering.text("target", spec.item.target)
    value = literal(text)
    return value if isinstance(value, list) or spec.kind == "choice" else text


def _gold_index(value: Any, texts: Sequence[str], where: str) -> int:
    """Index of the gold choice: a number is an index, text is a choice's text, else its letter, else an index."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str):
        text = value.strip()
        same = [index for index, choice in enumerate(texts) if choice.strip() == text]
        if len(same) > 1:
            raise UserError(f"{where}: gold {value!r} is the text of {len(same)} choices; give its index")
        if same:
            return same[0]
        if len(text) == 1 and text.isascii() and text.isalpha():
            value = ord(text.upper()) - ord("A")
        elif text.isascii() and text.isdigit():
            value = int(text)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(texts):
        return value
    raise UserError(
        f"{where}: gold {value!r} is no choice: it must be an index from 0 to {len(texts) - 1}, a letter, "
        f"or one of {texts!r}"
    )
