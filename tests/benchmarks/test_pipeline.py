"""The benchmark of the ledger and the dispatcher, on few checkpoints."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.pipeline import measure


def test_every_checkpoint_is_dispatched_once_and_in_order(tmp_path: Path) -> None:
    found = measure(tmp_path, 21)
    assert found["dispatched"] == 21 + 2
    assert isinstance(found["landing_to_dispatch_median"], float)
