"""Recorded decoding: fixed inputs per size, filler rows, and what happens when recording fails or memory is used up."""

from __future__ import annotations

from typing import Any

import pytest


class Recorder:
    """Replays by computing again: what a graph does, from the tensors that it was recorded with."""

    def __init__(self, error: Exception | None = None) -> None:
        self.n = 0
        self._error = error

    def __call__(self, compute: Any) -> Any:
        if self._error:
            raise self._error
        self.n += 1
        return compute


def _graphs(recorder: Recorder, n_bytes: int = 100) -> Any:
    import torch

    from eval_tasks.engine.cuda.graphs import DecodeGraphs

    def forward(ids: Any, positions: Any, attend: Any) -> Any:
        table = attend._rows.table
        return torch.cat((ids.T, positions.T, table, torch.full_like(ids.T, attend._rows.n_splits)), dim=1)

    return DecodeGraphs(forward, torch.empty(1, 2, 1, 32, 16), recorder, lambda: recorder.n * n_bytes)


def _decoded(*positions: int) -> list[Any]:
    import torch

    from eval_tasks.engine.forward import Decoded

    return [Decoded(100 + p, p, torch.empty(1, 2, 1, 2048, 16)) for p in positions]


def test_inputs_are_those_of_each_call() -> None:
    recorder = Recorder()
    graphs = _graphs(recorder)
    for positions in ((5, 6, 7, 8, 9), (10, 20, 30, 40, 50, 60), (5, 6, 7, 8, 9)):
        tokens = _decoded(*positions)
        found = graphs(tokens, 1000)
        expected = [[100 + p, p, row, p, tokens[row].cache.data_ptr(), 2048, 1] for row, p in enumerate(positions)]
        assert found.tolist() == expected
    assert recorder.n == 1


def test_a_result_outlives_the_next_call() -> None:
    graphs = _graphs(Recorder())
    first = graphs(_decoded(5), 1000)
    before = first.tolist()
    graphs(_decoded(6), 1000)
    assert first.tolist() == before


def test_sizes_are_rounded_up() -> None:
    recorder = Recorder()
    graphs = _graphs(recorder)
    for n, position, splits in ((1, 511, 1), (4, 0, 1), (5, 512, 2), (8, 1023, 2), (8, 1600, 4)):
        found = graphs(_decoded(*[position] * n), 1000)
        assert found.shape[0] == n
        assert found[0, -1] == splits
    assert recorder.n == 3


def test_memory_is_bounded_and_what_is_recorded_stays() -> None:
    recorder = Recorder()
    graphs = _graphs(recorder, n_bytes=100)
    assert graphs(_decoded(1), 100) is not None
    assert graphs(_decoded(*range(9)), 100) is None
    assert graphs(_decoded(2), 100) is not None
    assert graphs(_decoded(2), 0) is None
    assert graphs([], 100) is None
    assert recorder.n == 1


def test_a_failure_is_kept_and_ends_recording(caplog: pytest.LogCaptureFixture) -> None:
    graphs = _graphs(Recorder(RuntimeError("operation not permitted when stream is capturing")))
    assert graphs(_decoded(1), 1000) is None
    assert graphs(_decoded(1), 1000) is None
    assert graphs.problem == "RuntimeError: operation not permitted when stream is capturing"
    assert len(caplog.records) == 1
