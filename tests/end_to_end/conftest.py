"""Live installations for tests that share one, in temporary homes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from checkpoint_eval.embedded import down
from tests.end_to_end.installation import Installation, start
from tests.planned import write_checkpoint


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("source") / "model")


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """`airflow standalone` as one program, as a laptop would run it."""
    home = tmp_path_factory.mktemp("standalone") / "home"
    try:
        fixed = {"suite": "colours-all", "checkpoint": str(home / "fixed")}
        installation = start(home, standalone=True, further={"determinism": fixed})
        yield installation
        installation.store.close()
    finally:
        down(home)


@pytest.fixture(scope="module")
def supervised(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Airflow's components one by one, each brought back when it dies; outputs long enough to interrupt."""
    home = tmp_path_factory.mktemp("supervised") / "home"
    try:
        installation = start(home, standalone=False, every=1, max_tokens=150)
        yield installation
        installation.store.close()
    finally:
        down(home)
