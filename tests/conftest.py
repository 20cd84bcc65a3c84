"""Fixtures that every room's tests may use."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def golden() -> Path:
    """The folder of public recorded data beside the checkout; without it the test skips and says so."""
    folder = Path(__file__).parents[1] / "../shared/golden"
    if not folder.is_dir():
        pytest.skip("no ../shared/golden beside this checkout")
    return folder.resolve()
