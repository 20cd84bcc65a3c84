from __future__ import annotations

from pathlib import Path

import pytest

from eval_tasks.errors import DataError
from eval_tasks.registry import (
    load_benchmark_file,
    load_rule_file,
    load_suite_file,
    shipped_benchmarks,
    shipped_rules,
    shipped_suites,
)


def test_all_that_ships_can_be_loaded() -> None:
    for name, path in shipped_benchmarks().items():
        assert load_benchmark_file(path).name == name
    for name, path in shipped_suites().items():
        suite = load_suite_file(path)
        assert suite.name == name
        assert {entry.name for entry in suite.benchmarks} <= set(shipped_benchmarks())
    for name, path in shipped_rules().items():
        assert load_rule_file(path).name == name


def test_files_are_told_apart_by_content(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "z.yaml").write_text("name: bench\nkind: loss\n")
    (tmp_path / "a.yaml").write_text("name: suite\nbenchmarks: []\n")
    (tmp_path / "b.yaml").write_text("name: rule\ncomponents: {}\n")
    assert list(shipped_benchmarks(tmp_path)) == ["bench"]
    assert list(shipped_suites(tmp_path)) == ["suite"]
    assert list(shipped_rules(tmp_path)) == ["rule"]


def test_two_files_of_one_name_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("name: bench\n")
    (tmp_path / "b.yaml").write_text("name: bench\n")
    with pytest.raises(DataError, match="both define the benchmark 'bench'"):
        shipped_benchmarks(tmp_path)
    (tmp_path / "c.yaml").write_text("no: name\n")
    with pytest.raises(DataError, match="has no name"):
        shipped_suites(tmp_path)
