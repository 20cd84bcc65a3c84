"""Processes and directories of pods that nobody keeps a record of any more: found by a mark in their environment."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import psutil

from checkpoint_eval.local_pods.launch import MARK

_log = logging.getLogger(__name__)


def clean_up(pods_dir: Path, known: Collection[str]) -> None:
    """End processes and remove directories of pods whose uid is not among the known."""
    for process, pod_dir in _marked_processes():
        if pod_dir.parent == pods_dir and pod_dir.name not in known:
            _log.warning("ending process %d of a pod without a record (%s)", process.pid, pod_dir.name)
            with suppress(psutil.Error):
                process.kill()
    for directory in pods_dir.iterdir():
        if directory.name not in known:
            shutil.rmtree(directory, ignore_errors=True)


def _marked_processes() -> list[tuple[psutil.Process, Path]]:
    """Every process of this user that carries a pod's mark, with the pod's directory."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            mark = process.environ().get(MARK)
            if mark:
                found.append((process, Path(mark)))
    return found


def kill_processes_of(pod_dir: Path) -> None:
    """End what is left of one pod."""
    for process, marked_dir in _marked_processes():
        if marked_dir == pod_dir:
            with suppress(psutil.Error):
                process.kill()
