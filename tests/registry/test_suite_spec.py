from __future__ import annotations

from pathlib import Path

import pytest

from eval_tasks.errors import UserError
from eval_tasks.registry import SuiteEntrySpec, load_suite_file


def _write(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def test_a_suite_keeps_its_order(tmp_path: Path) -> None:
    text = 'name: s\nversion: "1"\ntier: health\nbenchmarks: [{name: b, n_items: 5, seed: 2}, {name: a, version: "3"}]'
    suite = load_suite_file(_write(tmp_path / "s.yaml", text))
    assert suite.benchmarks == [SuiteEntrySpec(name="b", n_items=5, seed=2), SuiteEntrySpec(name="a", version="3")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name: s\nversion: "1"\ntier: health\nbenchmarks: []\n', "benchmarks: .*at least 1"),
        ('name: s\nversion: "1"\ntier: daily\nbenchmarks: [{name: a}]\n', "tier: .*'health'"),
        ('name: s\nversion: "1"\ntier: health\nbenchmarks: [{name: a}, {name: a}]\n', "twice here: a"),
        (
            'name: s\nversion: "1"\ntier: health\nbenchmarks: [{name: a, n_item: 5}]\n',
            "close: 'n_items'",
        ),
        ('name: s\nversion: "1"\ntier: health\nbenchmarks: [{name: a, n_items: 0}]\n', "n_items"),
    ],
)
def test_wrong_suites(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_suite_file(_write(tmp_path / "s.yaml", text))
