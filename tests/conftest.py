"""Fixtures that every test may use: the public golden data, and an open store in a temporary folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from eval_tasks.settings import Settings
from eval_tasks.store import Store, open_store

os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def golden() -> Path:
    """The folder of public golden data; the test is skipped, visibly, where it is absent."""
    folder = (Path(__file__).parents[1] / "../shared/golden").resolve()
    if not folder.is_dir():
        pytest.skip(f"no golden data at {folder}")
    return folder


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings whose every place lies in the test's own folder, whatever the caller's environment says."""
    for name in ("HOME", "STORE_URI", "CATALOG_URL", "CONFIG"):
        monkeypatch.delenv(f"CHECKPOINT_EVAL_{name}", raising=False)
    return Settings(home=tmp_path / "home")


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    """An open, empty store."""
    with open_store(settings) as opened:
        yield opened
