"""What the C library does with freed memory, where it can be told (glibc): a speed, and never a result."""

from __future__ import annotations

import ctypes

# glibc's mallopt.
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3
_KEPT_BYTES = 1 << 30


def keep_freed() -> None:
    """Keep blocks of up to 1 GiB in the process once they are freed, rather than ask the system for their pages again.

    Every forward frees and takes the same activations.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _KEPT_BYTES)
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)


def give_back() -> None:
    """Return what the allocator holds and nothing uses to the system."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
