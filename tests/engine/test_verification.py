"""verify_engine: every check passes on a sound engine, and each way to break one is found."""

from __future__ import annotations

import pytest

from eval_tasks.engine import head, layers, linears, load_engine, prefix, verification, verify_engine
from eval_tasks.engine.verification import PLAIN_MODEL
from eval_tasks.errors import CheckpointError
from eval_tasks.records import EngineConfig

SMALL = EngineConfig(max_context=16)
CHECKS = [
    "again",
    "loaded again",
    "alone",
    "backwards",
    "reordered",
    "items removed",
    "items added",
    "resharded",
    "perturbed plan",
    "few tokens per forward",
    "many tokens per forward",
    "shared prefix, cache empty",
    "shared prefix, cache warm",
    "shared prefix, small cache",
    "2 threads",
    PLAIN_MODEL,
]


def found(folder, config: EngineConfig = SMALL):
    return {check.name: check for check in verify_engine(folder, config)}


@pytest.mark.parametrize(("dtype", "context"), [("float32", 70), ("bfloat16", 16)])
def test_a_sound_engine_passes_every_check(build, dtype, context: int) -> None:
    told: list[tuple[int, int]] = []
    config = EngineConfig(max_context=context, dtype=dtype)
    checks = verify_engine(build("llama"), config, lambda *n: told.append(n))
    assert [check.name for check in checks] == CHECKS
    assert [check for check in checks if not check.passed or check.differing] == []
    assert all(check.n_items >= 20 and check.seconds > 0 for check in checks)
    assert told == [(n, len(CHECKS)) for n in range(len(CHECKS) + 1)]


def test_each_number_of_threads_is_checked_against_the_other(build) -> None:
    folder = build("llama")
    engine = load_engine(folder, EngineConfig(threads=2))
    assert "1 thread" in verification._runs(engine, folder, [])
    assert "2 threads" in verification._runs(engine.with_threads(1), folder, [])


def test_a_multiplication_that_depends_on_its_rows_is_found(build, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = linears.Product.inner

    def inexact(product, x, *arguments):
        y = exact(product, x, *arguments)
        return y * (1 + 1e-6 * (x.numel() // x.shape[-1] > 256))

    monkeypatch.setattr(linears.Product, "inner", inexact)
    checks = found(build("llama"))
    assert not checks["alone"].passed
    assert checks["alone"].differing
    assert checks["again"].passed
    assert checks[PLAIN_MODEL].passed


def test_a_prefix_that_is_taken_for_another_is_found(build, monkeypatch: pytest.MonkeyPatch) -> None:
    """One token too many in common: alone every row is right."""
    exact = prefix.Path.common
    monkeypatch.setattr(
        prefix.Path, "common", lambda path, ids: min(exact(path, ids) + 1, len(ids), len(path.ids)) if path.ids else 0
    )
    checks = found(build("llama"), EngineConfig(max_context=100))
    assert checks["again"].passed and checks[PLAIN_MODEL].passed
    assert not checks["shared prefix, cache empty"].passed
    assert not checks["resharded"].passed
    assert not checks["perturbed plan"].passed


def test_a_row_that_takes_from_its_neighbour_is_found(build, monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeatable for one order and one set of items, and for no other."""
    exact = head.Head._blocks

    def leaking(self, hidden):
        for logits, finite in exact(self, hidden):
            logits[1:, 0] += 1e-4 * logits[:-1, 0]
            yield logits, finite

    monkeypatch.setattr(head.Head, "_blocks", leaking)
    checks = found(build("llama"))
    assert checks["again"].passed
    broken = ("alone", "backwards", "reordered", "items removed", "items added", "resharded", "perturbed plan")
    assert [name for name in broken if checks[name].passed] == []


def test_another_function_is_found(build, monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeatable and wrong: attention with another scale."""
    exact = layers.Form
    monkeypatch.setattr(layers, "Form", lambda scale, *more: exact(scale * 1.1, *more))
    checks = found(build("llama"))
    assert checks["alone"].passed
    assert not checks[PLAIN_MODEL].passed


def test_what_must_not_be_evaluated_is_not_verified(build, tmp_path) -> None:
    with pytest.raises(CheckpointError, match=r"config\.json is not there"):
        verify_engine(tmp_path, SMALL)
