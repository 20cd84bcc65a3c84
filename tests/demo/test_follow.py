"""How the demo's drivers begin and end: their own home only, a line instead of a traceback."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import real
from follow import EvaluationFailedError, ended, own_home

import demo
from checkpoint_eval.embedded import EmbeddedError
from eval_tasks.errors import UserError


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (EvaluationFailedError("run 7 failed"), 1, "error: run 7 failed"),
        (EmbeddedError("port 1 is taken"), 1, "error: port 1 is taken"),
        (KeyboardInterrupt(), 130, "interrupted; what was started stays up until `make down`"),
    ],
)
def test_an_end_is_one_line(error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    def run() -> int:
        raise error

    assert ended(run) == code
    assert said in capsys.readouterr().err


def test_no_other_store_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHECKPOINT_EVAL_CATALOG_URL", "postgresql://elsewhere/catalog")
    own_home()
    assert not [name for name in os.environ if name.startswith("CHECKPOINT_EVAL_")]


def test_a_folder_that_is_no_demo_is_not_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "thesis.tex").touch()
    monkeypatch.setattr(sys, "argv", ["demo.py", "--home", str(tmp_path)])
    with pytest.raises(UserError, match="something else than a demo"):
        demo.main()
    assert (tmp_path / "thesis.tex").exists()


@pytest.mark.parametrize("option", ["--data", "--model"])
def test_a_folder_that_cannot_be_used_is_named_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    for name in ("mmlu", "gsm8k", "ifeval"):
        (tmp_path / "data" / name).mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    given = {"--home": tmp_path / "home", "--data": tmp_path / "data", option: tmp_path / "empty"}
    monkeypatch.setattr(sys, "argv", ["real.py", *(str(part) for pair in given.items() for part in pair)])
    with pytest.raises(UserError, match=str(tmp_path / "empty")):
        real.main()
    assert not (tmp_path / "home").exists()
