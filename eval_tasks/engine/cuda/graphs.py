"""Decoded tokens in, hidden states out, by replaying recorded launches: a step of decoding is hundreds of small ones.

One recording per (rows, splits of keys), both rounded up to a power of two: its inputs lie in fixed tensors that are
filled before each replay. It runs the kernels that would run without it, so it cannot move a bit. When recording
fails, or its memory is used up, the caller goes on without.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from eval_tasks.engine.cuda.attention import DecodeSplits, DecodeTable, decode_rows, splits_for

if TYPE_CHECKING:
    import torch

    from eval_tasks.engine.attention import Attend
    from eval_tasks.engine.forward import Decoded

_LEAST_ROWS = 4

_log = logging.getLogger(__name__)

Forward = Callable[["torch.Tensor", "torch.Tensor", "Attend"], "torch.Tensor"]
Replay = Callable[[], "torch.Tensor"]
Record = Callable[[Replay], Replay]


class _Recording(NamedTuple):
    ids: torch.Tensor
    positions: torch.Tensor
    table: torch.Tensor
    replay: Replay


class DecodeGraphs:
    """`forward(ids, positions, attend)` gives hidden states (rows, width) for ids and positions (1, rows).

    `filler` is a cache that rows beyond the asked ones write to. `record` makes a computation one that is replayed;
    `used_bytes` is what recordings hold so far. `problem`: why recording failed, '' when it did not.
    """

    def __init__(self, forward: Forward, filler: torch.Tensor, record: Record, used_bytes: Callable[[], int]) -> None:
        self.problem = ""
        self._forward = forward
        self._filler = filler
        self._record = record
        self._used_bytes = used_bytes
        self._recordings: dict[tuple[int, int], _Recording] = {}

    def __call__(self, tokens: Sequence[Decoded], max_bytes: int) -> torch.Tensor | None:
        """Hidden states (tokens, width), or None when there is no recording for them and none can be made.

        None is made once they hold `max_bytes`, and none is used when that is 0.
        """
        import torch

        if not tokens or not max_bytes:
            return None
        size = (_up(max(len(tokens), _LEAST_ROWS)), _up(splits_for(max(t.position for t in tokens))))
        known = self._recordings.get(size)
        if known is None and (self.problem or self._used_bytes() >= max_bytes):
            return None
        n_filler = size[0] - len(tokens)
        ids = [*(t.id for t in tokens), *[0] * n_filler]
        positions = [*(t.position for t in tokens), *[0] * n_filler]
        rows = decode_rows([*(t.cache for t in tokens), *[self._filler] * n_filler], positions)
        inputs = torch.tensor([[*row, *pair] for row, pair in zip(rows, zip(ids, positions, strict=True), strict=True)])
        if known is None:
            known = self._recorded(size, inputs)
            if known is None:
                return None
        else:
            self._fill(known, inputs)
        return known.replay()[: len(tokens)].clone()

    def _recorded(self, size: tuple[int, int], inputs: torch.Tensor) -> _Recording | None:
        """A recording for `size`, its tensors filled with `inputs`, or None when it cannot be made."""
        n_rows, n_splits = size
        new = self._filler.new_empty
        ids, positions = (new((1, n_rows), dtype=inputs.dtype) for _ in range(2))
        table = new((n_rows, 4), dtype=inputs.dtype)
        attend = DecodeSplits(DecodeTable(table, n_splits))
        recording = _Recording(ids, positions, table, lambda: self._forward(ids, positions, attend))
        self._fill(recording, inputs)
        try:
            replay = self._record(recording.replay)
        except RuntimeError as error:
            self.problem = f"{type(error).__name__}: {error}"
            _log.warning("decoding goes on without CUDA graphs, with the same bits: %s", self.problem)
            return None
        self._recordings[size] = recording = recording._replace(replay=replay)
        return recording

    def _fill(self, recording: _Recording, inputs: torch.Tensor) -> None:
        """Put a table of (row, position, address, capacity, id, position) in a recording's tensors, in one transfer."""
        inputs = inputs.to(self._filler.device)
        recording.table.copy_(inputs[:, :4])
        recording.ids.copy_(inputs[None, :, 4])
        recording.positions.copy_(inputs[None, :, 5])


class CudaRecorder:
    """Records computations as CUDA graphs that share one pool of memory."""

    def __init__(self) -> None:
        import torch

        self._pool = torch.cuda.graph_pool_handle()
        self.used_bytes = 0

    def __call__(self, compute: Replay) -> Replay:
        """`compute` recorded, after two runs to compile and to allocate; each replay leaves its result in one place.

        Raises RuntimeError, or a class of it, where it cannot be recorded.
        """
        import torch

        current = torch.cuda.current_stream()
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(current)
        with torch.cuda.stream(side):
            for _ in range(2):
                compute()
        current.wait_stream(side)
        before = torch.cuda.memory_reserved()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            result = compute()
        self.used_bytes += max(0, torch.cuda.memory_reserved() - before)

        def replay() -> torch.Tensor:
            graph.replay()
            return result

        return replay


def _up(n: int) -> int:
    """The next power of two."""
    return 1 << (n - 1).bit_length()


def cuda_graphs(forward: Forward, filler: torch.Tensor) -> DecodeGraphs:
    """DecodeGraphs on a GPU."""
    recorder = CudaRecorder()
    return DecodeGraphs(forward, filler, recorder, lambda: recorder.used_bytes)
