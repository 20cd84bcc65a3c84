"""Faults in an order that a seed fixes, and how each is done to a live installation."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from checkpoint_eval.embedded import EmbeddedError, signal_program
from tests.end_to_end.installation import Installation

PROGRAMS = ("scheduler", "triggerer", "api-server", "dag-processor", "pods")
KINDS = (*PROGRAMS, "pod", "stalled-pod", "full-disk")
_PAUSE_SECONDS = (4.0, 14.0)
_LASTS_SECONDS = (2.0, 8.0)
_LOOKS_FOR_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault. `pause_seconds`: from the one before; `pick`: which of those it could hit, in [0, 1)."""

    kind: str
    pause_seconds: float
    pick: float
    lasts_seconds: float


def schedule(seed: int, n: int, kinds: tuple[str, ...] = KINDS) -> list[Fault]:
    """`n` faults, each kind as often as the others (one more of some), in an order that `seed` fixes."""
    draw = random.Random(seed)
    chosen = [kinds[k % len(kinds)] for k in range(n)]
    draw.shuffle(chosen)
    return [
        Fault(
            kind=kind,
            pause_seconds=draw.uniform(*_PAUSE_SECONDS),
            pick=draw.random(),
            lasts_seconds=draw.uniform(*_LASTS_SECONDS),
        )
        for kind in chosen
    ]


def inject(fault: Fault, installation: Installation) -> bool:
    """Do it; False where there was nothing to do it to, such as a pod while none runs."""
    if fault.kind in PROGRAMS:
        # supervisord may be bringing it back just now.
        return _found(lambda: _killed(installation.home, fault.kind))
    if fault.kind == "full-disk":
        return _fill(installation.home / "store", fault.lasts_seconds)
    if not _found(installation.pods):
        return False
    pods = sorted(installation.pods(), key=lambda process: process.pid)
    if not pods:
        return False
    with suppress(psutil.NoSuchProcess):
        victim = pods[int(fault.pick * len(pods))]
        if fault.kind == "pod":
            victim.send_signal(signal.SIGKILL)
            return True
        # As a read from a disk that does not answer: nothing moves, heartbeats included.
        victim.suspend()
        time.sleep(fault.lasts_seconds)
        victim.resume()
        return True
    return False


class SmallDisk:
    """A file system of its own for the store, so that it can be filled; needs root. Use in a ``with`` block."""

    def __init__(self, folder: Path, megabytes: int = 256) -> None:
        self._folder, self._megabytes = folder, megabytes

    def __enter__(self) -> bool:
        """Whether it could be made."""
        self._folder.mkdir(parents=True, exist_ok=True)
        size = f"size={self._megabytes}m,mode=0700"
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", size, "checkpoint-eval-chaos", str(self._folder)],
            capture_output=True,
            check=False,
        )
        self._made = done.returncode == 0
        return self._made

    def __exit__(self, *_: object) -> None:
        if self._made:
            subprocess.run(["umount", "--lazy", str(self._folder)], check=True)


def _fill(folder: Path, seconds: float) -> bool:
    """Take what space is left for some seconds."""
    ballast = folder / "ballast.chaos"
    block = b"\0" * 2**16
    try:
        with ballast.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(block)
        time.sleep(seconds)
    finally:
        ballast.unlink(missing_ok=True)
    return True


def _killed(home: Path, program: str) -> bool:
    try:
        signal_program(home, program)
    except (ValueError, EmbeddedError, ProcessLookupError):  # no pid just now
        return False
    return True


def _found(look: Callable[[], object]) -> bool:
    deadline = time.monotonic() + _LOOKS_FOR_SECONDS
    while not look():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.5)
    return True
