"""Not only what is asked for: every log-probability of every token at every position has the same bits by every way."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from eval_tasks.engine.engine import Engine
from eval_tasks.engine.forward import Decoded, Part, room_for
from eval_tasks.engine.runtime import pin_threads
from tests.engine.conftest import CONTEXT, FAMILIES

EDGES = (*range(1, 14), 31, 32, 33, 63, 64, 65, 127, 128, 129, CONTEXT - 1, CONTEXT)
SOME = (1, 2, 5, 13, 31, 33, 64, 129, CONTEXT)
FAST: list[tuple[str, str, dict[str, Any]]] = [
    ("gemma2", "float32", {}),
    ("gpt2", "float32", {}),
    ("llama", "bfloat16", {}),
    ("qwen3_moe", "float32", {}),
]
FULL: list[tuple[str, str, dict[str, Any]]] = [
    *((family, dtype, {}) for family in FAMILIES for dtype in ("float32", "bfloat16")),
    *(("mistral", dtype, {"sliding_window": window}) for dtype in ("float32", "bfloat16") for window in (5, 32, 70)),
]
VARIANTS = [
    *((*variant, SOME) for variant in FAST),
    *(pytest.param((*variant, EDGES), marks=pytest.mark.full) for variant in FULL),
]

Rows = list[list[bytes]]


@pytest.fixture(scope="module", params=VARIANTS, ids=lambda v: "-".join(map(str, [*v[:3], len(v[3])])))
def variant(request: pytest.FixtureRequest) -> tuple[str, str, dict[str, Any], tuple[int, ...]]:
    """Family, dtype, changes of its configuration, and the lengths of the sequences."""
    return request.param


@pytest.fixture(scope="module")
def engine(load, variant) -> Engine:
    family, dtype, changes, _ = variant
    engine: Engine = load(family, dtype, **changes)
    pin_threads(engine.config)
    return engine


@pytest.fixture(scope="module")
def sequences(variant) -> list[tuple[int, ...]]:
    rng = random.Random(3)
    return [tuple(rng.randrange(259) for _ in range(length)) for length in variant[3]]


@pytest.fixture(scope="module")
def alone(engine: Engine, sequences: list[tuple[int, ...]]) -> Rows:
    """Each sequence in a forward of its own."""
    return [_read(engine, [ids])[0] for ids in sequences]


def _read(engine: Engine, sequences: Sequence[tuple[int, ...]], shared: int = 0) -> Rows:
    """All rows of all positions; with `shared` leading tokens read in a forward before."""
    body = engine._body
    parts, before = [], []
    for ids in sequences:
        cache = body.key_values(room_for(len(ids)))
        start = min(shared, len(ids) - 1)
        if start:
            before.append(Part(ids=ids[:start], start=0, cache=cache))
        parts.append(Part(ids=ids[start:], start=start, cache=cache))
    first = _cut(engine, body.forward(before)[0], before) if before else []
    rest = _cut(engine, body.forward(parts)[0], parts)
    first_rows = iter(first)
    return [(next(first_rows) if part.start else []) + rows for part, rows in zip(parts, rest, strict=True)]


def _cut(engine: Engine, hidden: Any, parts: Sequence[Part]) -> Rows:
    rows = _bytes(engine, hidden)
    ends = [sum(len(part.ids) for part in parts[: i + 1]) for i in range(len(parts))]
    return [rows[end - len(part.ids) : end] for end, part in zip(ends, parts, strict=True)]


def _bytes(engine: Engine, hidden: Any) -> list[bytes]:
    rows = engine._head.rows_of(hidden)
    assert all(row is not None and len(row) == 259 for row in rows)
    return [row.tobytes() for row in rows if row is not None]


def _differing(found: Rows, expected: Rows) -> list[tuple[int, int]]:
    """(length, position) of every row that has other bits."""
    assert [len(rows) for rows in found] == [len(rows) for rows in expected]
    return [
        (len(rows), at)
        for rows, wanted in zip(found, expected, strict=True)
        for at, (row, other) in enumerate(zip(rows, wanted, strict=True))
        if row != other
    ]


def test_rows_are_no_constant(alone: Rows) -> None:
    """What follows would hold for a model that ignores its input."""
    distinct = {row for rows in alone for row in rows}
    assert len(distinct) > sum(map(len, alone)) * 0.9


def test_in_one_forward_in_any_order(engine: Engine, sequences: list[tuple[int, ...]], alone: Rows) -> None:
    assert _differing(_read(engine, sequences), alone) == []
    assert _differing(_read(engine, sequences[::-1]), alone[::-1]) == []


def test_among_any_companions(engine: Engine, sequences: list[tuple[int, ...]], alone: Rows) -> None:
    strangers = [tuple(reversed(ids)) for ids in sequences]
    assert _differing(_read(engine, [*strangers, *sequences])[len(strangers) :], alone) == []
    assert _differing(_read(engine, [*sequences[1::3], *strangers[::2]])[: len(sequences[1::3])], alone[1::3]) == []


@pytest.mark.parametrize("shared", [1, 12, 31, 32, 33, 64, 100])
def test_after_a_prefix_that_was_read_before(
    engine: Engine, sequences: list[tuple[int, ...]], alone: Rows, shared: int
) -> None:
    assert _differing(_read(engine, sequences, shared), alone) == []


@pytest.mark.parametrize("n_rows", [2, 3, 4, 7, 16, 33, 64])
def test_written_beside_any_number_of_others(engine: Engine, variant, n_rows: int) -> None:
    """A token that is decoded alone, among others, beside prompts that are read, and in a roomier cache."""
    rng = random.Random(n_rows)
    lengths = [max(2, variant[3][i % len(variant[3])]) for i in range(n_rows)]
    sequences = [tuple(rng.randrange(259) for _ in range(length)) for length in lengths]
    body = engine._body
    expected = [_bytes(engine, body.forward((), [_decoded(engine, ids)])[1])[0] for ids in sequences]
    together = [_decoded(engine, ids, more_room=40 * (i % 3)) for i, ids in enumerate(sequences)]
    assert _bytes(engine, body.forward((), together)[1]) == expected
    reading = [Part(ids=ids, start=0, cache=body.key_values(room_for(len(ids)))) for ids in sequences[:3]]
    assert _bytes(engine, body.forward(reading, together[::-1])[1]) == expected[::-1]


def _decoded(engine: Engine, ids: tuple[int, ...], more_room: int = 0) -> Decoded:
    """The last token of `ids`, to be written after all others were read."""
    cache = engine._body.key_values(room_for(len(ids) + more_room))
    engine._body.forward([Part(ids=ids[:-1], start=0, cache=cache)])
    return Decoded(ids[-1], len(ids) - 1, cache)


def test_on_two_threads(engine: Engine, sequences: list[tuple[int, ...]], alone: Rows) -> None:
    import torch

    try:
        torch.set_num_threads(2)
        assert _differing(_read(engine, sequences), alone) == []
        assert _differing([_read(engine, [ids])[0] for ids in sequences[::2]], alone[::2]) == []
    finally:
        pin_threads(engine.config)
