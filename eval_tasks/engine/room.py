"""How much memory this process may still use: of its cgroups' limits, of the machine, or of a GPU. Sets nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

_MEBIBYTE = 1024 * 1024
# What a kernel without a limit reports in cgroup v1, give or take its page size.
_NO_LIMIT = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """`n_bytes` may still be used; `source` says what bounds them."""

    n_bytes: int
    source: str

    def __str__(self) -> str:
        return f"{self.n_bytes / _MEBIBYTE:,.0f} MiB are free ({self.source})"


def room_of(device: str) -> Room:
    """What is free on `device`: ``cpu`` or ``cuda``."""
    return _on_gpu() if device == "cuda" else on_host()


def on_host(root: Path = Path("/")) -> Room:
    """The least of what the machine has available and what each cgroup above this process leaves it."""
    available = int(psutil.virtual_memory().available)
    rooms = [Room(n_bytes=available, source="the machine's available memory"), *_cgroups(root)]
    return min(rooms, key=lambda room: room.n_bytes)


def _on_gpu() -> Room:
    import torch

    free, total = torch.cuda.mem_get_info()
    return Room(n_bytes=int(free), source=f"of {total / _MEBIBYTE:,.0f} MiB on the GPU")


def _cgroups(root: Path) -> Iterator[Room]:
    """What each limited group leaves: its limit less what it uses and the kernel cannot take back."""
    membership = root / "proc/self/cgroup"
    lines = membership.read_text("utf-8").splitlines() if membership.is_file() else []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            mount, limit, usage, prefix = root / "sys/fs/cgroup", "memory.max", "memory.current", ""
        elif "memory" in controllers.split(","):
            mount, limit, usage = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
            prefix = "total_"
        else:
            continue
        # In a container the path may be that of the host, which is not to be seen here: its own group is the mount.
        inner = mount / path.lstrip("/")
        for folder in dict.fromkeys((inner, *(p for p in inner.parents if p.is_relative_to(mount)), mount)):
            bound = _number(folder / limit)
            if bound is not None and bound < _NO_LIMIT:
                used = (_number(folder / usage) or 0) - _reclaimable(folder / "memory.stat", prefix)
                left = max(0, bound - max(0, used))
                yield Room(n_bytes=left, source=f"of a limit of {bound / _MEBIBYTE:,.0f} MiB, {folder / limit}")


def _reclaimable(stat: Path, prefix: str) -> int:
    """Pages of files: the kernel drops them before it kills."""
    if not stat.is_file():
        return 0
    fields = dict(line.split(maxsplit=1) for line in stat.read_text("utf-8").splitlines() if " " in line)
    return sum(int(fields.get(f"{prefix}{name}", 0)) for name in ("inactive_file", "active_file"))


def _number(path: Path) -> int | None:
    """The number in a file; None where there is none, or the word ``max``."""
    try:
        text = path.read_text("utf-8").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
