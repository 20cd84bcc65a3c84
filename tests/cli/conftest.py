"""The command line in a home folder of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.cli import main


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """CHECKPOINT_EVAL_HOME, empty."""
    for name in ("STORE_URI", "CATALOG_URL", "CONFIG", "CACHE"):
        monkeypatch.delenv(f"CHECKPOINT_EVAL_{name}", raising=False)
    monkeypatch.delenv("TERMINATION_MESSAGE_PATH", raising=False)
    folder = tmp_path / "home"
    monkeypatch.setenv("CHECKPOINT_EVAL_HOME", str(folder))
    return folder


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """`run(*arguments, code=0) -> what the command printed`: standard error when it failed, else standard output."""

    def call(*arguments: object, code: int = 0) -> str:
        capsys.readouterr()
        got = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        assert got == code, f"exit code {got}: {printed.err}"
        return printed.err if code not in (0, 1) else printed.out

    return call


@pytest.fixture
def run_json(run: Callable[..., str]) -> Callable[..., Any]:
    """`run_json(*arguments, code=0)`: the same with `--json`, parsed."""
    return lambda *arguments, code=0: json.loads(run(*arguments, "--json", code=code))
