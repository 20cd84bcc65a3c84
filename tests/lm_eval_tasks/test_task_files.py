"""Reading alone: includes in lm-eval's order, functions named and never run, circles and gaps refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval_tasks.errors import UserError
from eval_tasks.lm_eval_tasks import read_task_file
from eval_tasks.lm_eval_tasks.task_files import PythonFunction


def test_of_several_includes_the_first_wins_and_the_file_itself_over_all(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/base_yaml").write_text("a: deep\nb: deep\nc: deep\nd: deep\n")
    (tmp_path / "first_yaml").write_text("include: deep/base_yaml\na: first\nb: first\nc: first\n")
    (tmp_path / "second_yaml").write_text("a: second\nb: second\ne: second\n")
    (tmp_path / "task.yaml").write_text("include: [first_yaml, second_yaml]\na: own\n")
    read = read_task_file(tmp_path / "task.yaml")
    assert read.settings == {"a": "own", "b": "first", "c": "first", "d": "deep", "e": "second"}
    assert read.functions == ()


def test_functions_are_named_and_never_imported(tmp_path: Path) -> None:
    (tmp_path / "utils.py").write_text("raise SystemExit('imported')\n")
    text = (
        "process_docs: !function utils.process\nmetric_list:\n  - metric: acc\n    aggregation: !function utils.mean\n"
    )
    (tmp_path / "task.yaml").write_text(text)
    read = read_task_file(tmp_path / "task.yaml")
    assert read.functions == (("process_docs", "utils.process"), ("metric_list.aggregation", "utils.mean"))
    assert read.settings["process_docs"] == PythonFunction(name="utils.process", folder=tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: !!python/object/apply:os.system ['true']", "not readable as YAML"),
        ("a: !unknown x", "not readable as YAML"),
        ("- a", "must hold a mapping"),
        ("include: gone", "includes 'gone', which is not there"),
        ("include: task.yaml", "go in a circle by way of task.yaml"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "task.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        read_task_file(path)
