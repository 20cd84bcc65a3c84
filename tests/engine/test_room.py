"""What a process may still use, by its cgroups of either version and by the machine."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from eval_tasks.engine.room import on_host

MEBIBYTE = 1024 * 1024
PLENTY = 1 << 62


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """machine(available, files) -> the root of a machine with so much available memory and these files."""

    def make(available: int, files: dict[str, object]) -> Path:
        class Memory:
            pass

        Memory.available = available
        monkeypatch.setattr(psutil, "virtual_memory", Memory)
        for name, content in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(f"{content}\n")
        return tmp_path

    return make


def test_without_a_limit_the_machine_decides(machine) -> None:
    root = machine(700 * MEBIBYTE, {"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": "max"})
    assert str(on_host(root)) == "700 MiB are free (the machine's available memory)"


def test_a_limit_of_version_2_counts_less_what_is_used_but_for_pages_of_files(machine) -> None:
    root = machine(
        PLENTY,
        {
            "proc/self/cgroup": "0::/",
            "sys/fs/cgroup/memory.max": 1000 * MEBIBYTE,
            "sys/fs/cgroup/memory.current": 600 * MEBIBYTE,
            "sys/fs/cgroup/memory.stat": f"anon 1\ninactive_file {300 * MEBIBYTE}\nactive_file {100 * MEBIBYTE}",
        },
    )
    there = on_host(root)
    assert there.n_bytes == 800 * MEBIBYTE
    assert "of a limit of 1,000 MiB" in there.source


def test_the_tightest_group_above_counts(machine) -> None:
    root = machine(
        PLENTY,
        {
            "proc/self/cgroup": "0::/pods/pod1",
            "sys/fs/cgroup/pods/pod1/memory.max": "max",
            "sys/fs/cgroup/pods/memory.max": 500 * MEBIBYTE,
            "sys/fs/cgroup/pods/memory.current": 100 * MEBIBYTE,
        },
    )
    assert on_host(root).n_bytes == 400 * MEBIBYTE


def test_a_path_of_the_host_is_looked_up_at_the_mount(machine) -> None:
    """In a container the group's path is the host's, and its files lie at the mount."""
    root = machine(
        PLENTY,
        {
            "proc/self/cgroup": "5:cpu:/elsewhere\n4:memory:/kubepods/pod1",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": 900 * MEBIBYTE,
            "sys/fs/cgroup/memory/memory.usage_in_bytes": 500 * MEBIBYTE,
            "sys/fs/cgroup/memory/memory.stat": f"total_inactive_file {200 * MEBIBYTE}\ninactive_file 1",
        },
    )
    assert on_host(root).n_bytes == 600 * MEBIBYTE


def test_the_number_that_means_no_limit_in_version_1_is_none(machine) -> None:
    root = machine(
        7 * MEBIBYTE,
        {"proc/self/cgroup": "4:memory:/", "sys/fs/cgroup/memory/memory.limit_in_bytes": 9223372036854771712},
    )
    assert on_host(root).n_bytes == 7 * MEBIBYTE


def test_a_group_beyond_its_limit_leaves_nothing(machine) -> None:
    root = machine(
        PLENTY,
        {
            "proc/self/cgroup": "0::/",
            "sys/fs/cgroup/memory.max": 10 * MEBIBYTE,
            "sys/fs/cgroup/memory.current": 20 * MEBIBYTE,
        },
    )
    assert on_host(root).n_bytes == 0


def test_a_machine_without_cgroups_has_its_own_memory(machine) -> None:
    assert on_host(machine(5 * MEBIBYTE, {})).n_bytes == 5 * MEBIBYTE
    assert on_host().n_bytes > 0
