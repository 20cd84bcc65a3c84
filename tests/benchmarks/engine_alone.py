"""Figures that need no other system: share of the matrix product's peak, cost of the contract, two processes."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_tasks.engine import Engine, attention, forward
from eval_tasks.engine.attention import Form, Span
from eval_tasks.engine.linears import multiply_by
from eval_tasks.records import Request
from tests.benchmarks.engine_models import Shape
from tests.benchmarks.engine_rounds import Seconds, compared, in_turn, timed
from tests.parity.reference import REPOSITORY

if TYPE_CHECKING:
    import torch

_PEAK_SIZE = 2048
_PREFILL_TOKENS = (1024, 1152, 896, 1024)
_GIGA = 1e9


def peak(engine: Engine, shape: Shape, rounds: int) -> dict[str, Any]:
    """Floating-point operations per CPU-second when reading prompts, beside the best large product's in the same run.

    Counted is what the model needs: products of the layers, causal attention, the head where it is asked for.
    """
    import torch

    requests = _prompts(_PREFILL_TOKENS, shape.vocabulary)
    dtype = getattr(torch, engine.config.dtype)
    a, b = (torch.randn(_PEAK_SIZE, _PEAK_SIZE).to(dtype) for _ in range(2))
    linear = multiply_by(b, None)
    out = torch.empty_like(a)
    engine.respond(requests[:1])
    sides = {
        "prefill": lambda: timed(lambda: engine.with_prefix("none").respond(requests)),
        "oneDNN": lambda: timed(lambda: [linear(a) for _ in range(8)]),
        "torch.mm": lambda: timed(lambda: [torch.mm(a, b, out=out) for _ in range(8)]),
    }
    seconds = in_turn(sides, rounds)
    product = 8 * 2 * _PEAK_SIZE**3
    rates = {name: [product / s.cpu / _GIGA for s in seconds[name]] for name in ("oneDNN", "torch.mm")}
    best = max(rates, key=lambda name: statistics.median(rates[name]))
    work = sum(_operations(shape, len(request.prompt_ids)) for request in requests)
    achieved = [work / s.cpu / _GIGA for s in seconds["prefill"]]
    return {
        "unit": "GFLOP per CPU-second",
        "ours": round(statistics.median(achieved), 1),
        "baseline": round(statistics.median(rates[best]), 1),
        "baseline_is": f"{best}, {_PEAK_SIZE} x {_PEAK_SIZE} x {_PEAK_SIZE}",
        "ratio": round(statistics.median(x / y for x, y in zip(achieved, rates[best], strict=True)), 3),
        "peaks": {name: round(statistics.median(values), 1) for name, values in rates.items()},
    }


def contract(engine: Engine, requests: Sequence[Request], rounds: int) -> dict[str, Any]:
    """The engine beside itself with PyTorch's own attention over each sequence as it is: no tiles, no fixed shapes.

    `ratio` is the cost: CPU seconds with the contract over those without.
    """

    def with_contract() -> Seconds:
        return timed(lambda: engine.tuned(engine.tuning).respond(requests))

    def without() -> Seconds:
        with plain_attention():
            return timed(lambda: engine.tuned(engine.tuning).respond(requests))

    engine.tuned(engine.tuning).respond(requests[:1])
    seconds = in_turn({"ours": with_contract, "plain": without}, rounds)
    costs = [a.cpu / b.cpu for a, b in zip(seconds["ours"], seconds["plain"], strict=True)]
    return {
        "unit": "items per CPU-second; ratio: cost",
        "n_items": len(requests),
        **compared(seconds["ours"], seconds["plain"], len(requests)),
        "ratio": round(statistics.median(costs), 3),
        "ratios": [round(cost, 3) for cost in costs],
        "baseline_is": "the same engine with scaled_dot_product_attention per sequence",
    }


def processes(folder: Path, dtype: str, requests: Path, rounds: int) -> dict[str, Any]:
    """Items per second of two worker processes over those of one, by wall time; `requests` is a JSONL file."""
    alone: list[float] = []
    together: list[float] = []
    with _workers(folder, dtype, requests, 2) as workers:
        for _ in range(rounds):
            alone.append(_seconds(workers[:1]))
            together.append(_seconds(workers))
    ratios = [2 * a / b for a, b in zip(alone, together, strict=True)]
    return {
        "unit": "items per second of two workers over one",
        "ratio": round(statistics.median(ratios), 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
        "seconds_alone": round(statistics.median(alone), 3),
        "seconds_together": round(statistics.median(together), 3),
    }


@contextmanager
def plain_attention() -> Iterator[None]:
    """Within it, forwards attend with PyTorch's own choice of kernels and shapes."""
    tiled = forward.PackedAttention
    forward.PackedAttention = _PlainAttention  # type: ignore[misc, assignment]
    try:
        yield
    finally:
        forward.PackedAttention = tiled  # type: ignore[misc]


class _PlainAttention:
    """As PackedAttention, without a promise."""

    def __init__(self, spans: Sequence[Span], device: torch.device) -> None:
        self._spans = spans

    def __call__(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, form: Form) -> torch.Tensor:
        import torch
        from torch.nn.attention.bias import causal_lower_right

        out = q.new_zeros(q.shape[1], q.shape[0], q.shape[2])
        for span in self._spans:
            rows = slice(span.row, span.row + span.n)
            keys, values = attention._write(span, layer, k, v)
            found = torch.nn.functional.scaled_dot_product_attention(
                q[None, :, rows].to(keys.dtype),
                keys[None, :, : span.end],
                values[None, :, : span.end],
                attn_mask=causal_lower_right(span.n, span.end) if span.start else None,
                is_causal=span.start == 0,
                scale=form.scale,
                enable_gqa=True,
            )
            out[rows] = found[0].transpose(0, 1).to(q.dtype)
        return out


def _prompts(lengths: Sequence[int], vocabulary: int) -> list[Request]:
    """Choice requests of seeded tokens: read whole, one head row each."""
    return [
        Request(
            benchmark_id="peak",
            item_id=str(i),
            kind="choice",
            prompt="",
            prompt_digest="",
            prompt_ids=tuple((17 + i + k * k * 31) % (vocabulary - 3) + 3 for k in range(length)),
            continuations=((5,), (6,)),
        )
        for i, length in enumerate(lengths)
    ]


def _operations(shape: Shape, n_tokens: int) -> int:
    attended = n_tokens * (n_tokens + 1) // 2
    attention = shape.layers * 4 * shape.heads * shape.head_width * attended
    return 2 * shape.n_body_weights * n_tokens + attention + 2 * shape.vocabulary * shape.hidden


@contextmanager
def _workers(folder: Path, dtype: str, requests: Path, n: int) -> Iterator[list[subprocess.Popen[str]]]:
    command = [sys.executable, "-m", "tests.benchmarks.engine_worker", str(folder), dtype, str(requests)]
    started = [
        subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(n)
    ]
    try:
        for worker in started:
            _line(worker)
        yield started
    finally:
        for worker in started:
            worker.kill()
            worker.wait()
            for pipe in (worker.stdin, worker.stdout):
                if pipe is not None:
                    pipe.close()


def _seconds(workers: Sequence[subprocess.Popen[str]]) -> float:
    """Wall seconds of one piece of work per worker, all begun at once: those of the last to end."""
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    return max(float(_line(worker)) for worker in workers)


def _line(worker: subprocess.Popen[str]) -> str:
    assert worker.stdout is not None
    line = worker.stdout.readline()
    if not line:
        raise RuntimeError(f"a worker process ended with code {worker.wait()}")
    return line
