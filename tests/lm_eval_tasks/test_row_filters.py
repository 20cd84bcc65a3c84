"""Functions that only keep rows are understood from their text; whatever does more is not, and none is run."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from eval_tasks.lm_eval_tasks import Options, Refusal, convert, read_task_file
from eval_tasks.lm_eval_tasks.row_filters import row_filter

PLAIN = """
from functools import partial
def keep(dataset, subject):
    \"\"\"Rows of a subject.\"\"\"
    return dataset.filter(lambda x: x["subject"] == subject)
def nynorsk(dataset):
    return dataset.filter(lambda row: row["language"] == "nno")
def prefixed(dataset: Dataset, subtask) -> Dataset:
    return dataset.filter(lambda example: example["subtask_name"] == f"quiz.{subtask}")
keep_law = partial(keep, subject="law")
quiz_law = partial(prefixed, subtask="law")
SUBJECTS = ["law", "Social Sciences"]
made = {f"process_{s.lower().replace(' ', '_')}": partial(keep, subject=s) for s in SUBJECTS}
globals().update(made)
"""


@pytest.fixture
def kept(tmp_path: Path):
    """`kept(text, function)`: what the function keeps, in a module of that text that would fail if it were run."""

    def read(text: str, function: str) -> dict[str, str] | None:
        path = tmp_path / "utils.py"
        path.write_text(text + "\nraise RuntimeError('this module was run')\n", "utf-8")
        return row_filter(path, function)

    return read


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("nynorsk", {"language": "nno"}),
        ("keep_law", {"subject": "law"}),
        ("quiz_law", {"subtask_name": "quiz.law"}),
        ("process_law", {"subject": "law"}),
        ("process_social_sciences", {"subject": "Social Sciences"}),
        ("process_physics", None),
        ("keep", None),
        ("made", None),
    ],
)
def test_rows_of_a_value_in_a_column(kept, function: str, expected: dict[str, str] | None) -> None:
    assert kept(PLAIN, function) == expected


@pytest.mark.parametrize(
    "body",
    [
        'return dataset.filter(lambda x: x["a"] != "b")',
        'return dataset.filter(lambda x: x["a"] == "b" and x["c"] == "d")',
        'return dataset.filter(lambda x: x["a"] == "b").map(other)',
        'return dataset.filter(lambda x: x["a"] == UNKNOWN)',
        'return dataset.filter(lambda x: x["a"] == 3)',
        'return dataset.filter(lambda x: x["a"] == "b", num_proc=2)',
        'return other.filter(lambda x: x["a"] == "b")',
        'dataset = dataset.shuffle()\n    return dataset.filter(lambda x: x["a"] == "b")',
        "return dataset",
        'print("x")\n    return dataset.filter(lambda x: x["a"] == "b")',
    ],
)
def test_what_does_more_or_other_things_is_not_understood(kept, body: str) -> None:
    assert kept(f"def keep(dataset):\n    {body}\n", "keep") is None


@pytest.mark.parametrize(
    "text",
    [
        PLAIN + "\nkeep_law = partial(keep, subject='physics')",
        PLAIN + "\nkeep_law = None",
        PLAIN.replace("from functools import partial", "from mine import partial"),
        PLAIN.replace('partial(keep, subject="law")', 'partial(keep, topic="law")'),
        PLAIN + "\ndef keep(dataset, subject):\n    return dataset",
        "keep_law = partial(",
    ],
)
def test_a_name_that_may_be_something_else_is_not_understood(kept, text: str) -> None:
    assert kept(text, "keep_law") is None


def test_a_task_that_keeps_rows_becomes_a_benchmark_of_those_rows(tmp_path: Path) -> None:
    """The function is beside the file that names it, which another one includes."""
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "utils.py").write_text(PLAIN, "utf-8")
    template = {
        "dataset_path": "org/quiz",
        "output_type": "multiple_choice",
        "test_split": "test",
        "fewshot_split": "dev",
        "num_fewshot": 2,
        "doc_to_text": "{{question}}",
        "doc_to_choice": ["A", "B"],
        "doc_to_target": "answer",
    }
    (shared / "template").write_text(yaml.safe_dump(template) + "process_docs: !function utils.keep_law\n", "utf-8")
    path = tmp_path / "quiz.yaml"
    path.write_text("task: quiz\ninclude: shared/template\n", "utf-8")
    found = convert(read_task_file(path), Options())
    assert found.document["source"]["where"] == {"subject": "law"}
    assert found.document["few_shot"]["source"]["where"] == {"subject": "law"}
    assert any(note.startswith("process_docs keeps the rows with {'subject': 'law'}") for note in found.notes)
    path.write_text("task: quiz\ninclude: shared/template\nprocess_docs: !function utils.keep\n", "utf-8")
    with pytest.raises(Refusal, match=r"process_docs: needs the Python function utils\.keep"):
        convert(read_task_file(path), Options())
