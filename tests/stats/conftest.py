"""The published worked examples, where they are present."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def oracle() -> dict[str, Any]:
    """Inputs and outputs computed twice elsewhere (scipy, statsmodels, R); skipped, visibly, where absent."""
    path = (Path(__file__).parents[2] / "../shared/oracles/statistics.json").resolve()
    if not path.is_file():
        pytest.skip(f"no oracle at {path}")
    return json.loads(path.read_text("utf-8"))
