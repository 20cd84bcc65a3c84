"""Timing of calls in turn: rounds in which every side runs once, process CPU time and wall time, medians.

Other work on the machine then meets all sides alike, and process CPU time leaves most of it out.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Seconds:
    """Of one call."""

    cpu: float
    wall: float


def timed(call: Callable[[], Any]) -> Seconds:
    """Run `call` in this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return Seconds(time.process_time() - cpu, time.perf_counter() - wall)


def in_turn(sides: Mapping[str, Callable[[], Seconds]], rounds: int) -> dict[str, list[Seconds]]:
    """Every side's seconds, round by round."""
    found: dict[str, list[Seconds]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            found[name].append(side())
    return found


def compared(ours: list[Seconds], theirs: list[Seconds], n: int) -> dict[str, Any]:
    """How often `n` units go through each side per second, as medians over rounds, and the ratio (ours / theirs)."""
    ratios = [b.cpu / a.cpu for a, b in zip(ours, theirs, strict=True)]
    return {
        "ours": round(n / statistics.median(s.cpu for s in ours), 3),
        "baseline": round(n / statistics.median(s.cpu for s in theirs), 3),
        "ratio": round(statistics.median(ratios), 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
        "wall_ratio": round(statistics.median(b.wall / a.wall for a, b in zip(ours, theirs, strict=True)), 3),
    }


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    import torch

    names = (line.partition(":")[2].strip() for line in _cpu_lines() if line.startswith("model name"))
    return {
        "cpu": next(names, "unknown"),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()],
        "versions": {name: version(name) for name in ("torch", "transformers", "tokenizers")},
    }


def _cpu_lines() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text("utf-8").splitlines() if path.exists() else []
