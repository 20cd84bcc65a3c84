"""A folder of tasks becomes files that register: prompts as lm-eval writes them, groups as suites, the rest named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from eval_tasks.errors import UserError
from eval_tasks.lm_eval_tasks import Options, import_tasks
from eval_tasks.prompts import render_text
from eval_tasks.register import register_benchmark, register_suite
from eval_tasks.store import Store

ROWS = [
    {
        "question": f" {n} and {n + 1}? ",
        "options": {"text": [str(2 * n + 1), "none"], "label": ["P", "Q"]},
        "key": "PQ"[n % 2],
    }
    for n in range(4)
]


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    """Two tasks on local rows with one template, one that needs code, a group of all and a group of groups."""
    folder = tmp_path / "tasks"
    folder.mkdir()
    for split, rows in (("test", ROWS[2:]), ("dev", ROWS[:2])):
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    template: dict[str, Any] = {
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": "test.jsonl", "dev": "dev.jsonl"}},
        "test_split": "test",
        "tag": "sums_tag",
        "doc_to_text": "Q: {{question.strip()}}\nA:",
        "metadata": {"version": 2.0},
    }
    write(folder / "_template_yaml", template)
    choice = {"output_type": "multiple_choice", "doc_to_choice": "{{options.text}}"}
    target = "{{options.label.index(key)}}"
    write(folder / "choose.yaml", {"include": "_template_yaml", "task": "choose", **choice, "doc_to_target": target})
    written = {"output_type": "generate_until", "doc_to_target": "{{options.text[0]}}", "num_fewshot": 1}
    samples = {"sampler": "first_n", "samples": [{"question": "0 and 1?", "options": {"text": ["1"]}}]}
    write(folder / "write.yaml", {"include": "_template_yaml", "task": "write", **written, "fewshot_config": samples})
    (folder / "code.yaml").write_text("include: _template_yaml\ntask: code\ndoc_to_target: !function utils.target\n")
    members = ["choose", "code", {"task": "choose", "num_fewshot": 3}, {"group": "inner", "task": ["write"]}]
    write(folder / "group.yaml", {"group": "sums", "task": members})
    return folder


def write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(yaml.safe_dump(content), "utf-8")


def test_what_is_written_registers_and_asks_as_lm_eval_does(store: Store, tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = import_tasks(tasks, out)
    assert [c.name for c in found.converted] == ["choose", "write"]
    assert [(r.task, r.field, r.reason) for r in found.refused] == [
        ("code", "doc_to_target", "needs the Python function utils.target")
    ]
    assert found.suites == {"inner": ["write"], "sums": ["choose", "write"], "sums_tag": ["choose", "write"]}
    left_out = (out / "sums.suite.yaml").read_text("utf-8").splitlines()[0]
    assert left_out == "# left out, no benchmarks: code, choose (changed: num_fewshot)"
    for name in ("choose", "write"):
        register_benchmark(store, out / f"{name}.yaml", "2026-01-01T00:00:00+00:00")
    assert [e.benchmark for e in register_suite(store, out / "sums.suite.yaml").entries] == ["choose", "write"]

    choose = store.catalog.benchmark("choose", "2.0")
    items = {i.fields["question"]: i for i in store.blobs.get_items(choose.items_blob)}
    first = items[" 2 and 3? "]
    assert (render_text(choose, first, []), first.target) == ("Q: 2 and 3?\nA:", 0)
    writing = store.catalog.benchmark("write")
    assert writing.few_shot_blob is not None
    shots = store.blobs.get_items(writing.few_shot_blob)
    item = next(i for i in store.blobs.get_items(writing.items_blob) if i.fields["question"] == " 3 and 4? ")
    assert render_text(writing, item, shots) == "Q: 0 and 1?\nA: 1\n\nQ: 3 and 4?\nA:"
    assert item.target == "7"


def test_nothing_is_overwritten_and_a_dry_run_writes_nothing(tasks: Path, tmp_path: Path) -> None:
    assert len(import_tasks(tasks, None).converted) == 2
    import_tasks(tasks, tmp_path / "out")
    before = (tmp_path / "out/choose.yaml").read_text("utf-8")
    with pytest.raises(UserError, match="nothing is overwritten"):
        import_tasks(tasks / "choose.yaml", tmp_path / "out", Options(num_fewshot=1))
    assert (tmp_path / "out/choose.yaml").read_text("utf-8") == before


def test_hub_data_without_a_revision_is_named_and_does_not_register(store: Store, tasks: Path, tmp_path: Path) -> None:
    hub = {"include": "_template_yaml", "task": "hub", "dataset_path": "org/sums", "dataset_kwargs": None}
    write(
        tasks / "hub.yaml",
        {**hub, "output_type": "multiple_choice", "doc_to_choice": ["a", "b"], "doc_to_target": "key"},
    )
    found = import_tasks(tasks / "hub.yaml", tmp_path / "out")
    assert found.unpinned == ["org/sums"]
    with pytest.raises(UserError, match="needs its 'revision'"):
        register_benchmark(store, tmp_path / "out/hub.yaml")
    assert import_tasks(tasks / "hub.yaml", None, Options(revisions={"org/sums": "ab" * 20})).unpinned == []


def test_of_two_tasks_with_one_name_the_second_is_refused(tasks: Path) -> None:
    (tasks / "z.yaml").write_text((tasks / "choose.yaml").read_text())
    (refused,) = (r for r in import_tasks(tasks, None).refused if r.task == "choose")
    assert (refused.field, refused.reason) == ("task", "has the name 'choose' that 'choose' has too")


def test_a_folder_without_tasks(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no task"):
        import_tasks(tmp_path, None)


def test_reasons_are_counted_by_kind(tasks: Path) -> None:
    (tasks / "more.yaml").write_text("include: _template_yaml\ntask: more\ndoc_to_target: !function utils.other\n")
    assert import_tasks(tasks, None).reasons() == [(2, "doc_to_target: a Python function")]
