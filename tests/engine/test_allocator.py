"""Freed memory is kept between forwards, and given back when asked."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

_GLIBC = hasattr(ctypes.CDLL(None), "mallopt")


@pytest.mark.skipif(not _GLIBC, reason="the C library has no mallopt")
def test_a_large_block_is_reused_and_given_back() -> None:
    """In a process of its own: what malloc is told lasts as long as the process."""
    code = """
import psutil, resource, torch
from eval_tasks.engine.allocator import give_back, keep_freed

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        torch.ones(16 * 2**20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

rss = psutil.Process().memory_info
unkept = faults()
keep_freed()
torch.ones(16 * 2**20)
kept, held = faults(), rss().rss
give_back()
print(unkept, kept, held - rss().rss)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    unkept, kept, returned = map(int, run.stdout.split())
    assert kept < unkept / 2
    assert returned > 32 * 2**20
