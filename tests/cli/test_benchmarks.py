"""benchmarks new, diff, check and import: from nothing to a registered version, and what its successor changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.planned import write_checkpoint

Run = Callable[..., str]
RunJson = Callable[..., Any]


@pytest.mark.parametrize("kind", ["choice", "generation", "loss"])
def test_a_new_benchmark_registers_as_it_is(run: Run, run_json: RunJson, tmp_path: Path, kind: str) -> None:
    told = run("benchmarks", "new", "my-quiz", "--kind", kind, "--folder", tmp_path / "new")
    path = tmp_path / "new" / "my-quiz.yaml"
    assert f"benchmarks register {path}" in told
    (benchmark,) = run_json("benchmarks", "register", path)
    assert (benchmark["name"], benchmark["kind"]) == ("my-quiz", kind)
    assert "nothing is overwritten" in run(
        "benchmarks", "new", "my-quiz", "--kind", kind, "--folder", path.parent, code=2
    )


def test_a_difference_is_shown_and_its_exit_code_says_so(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    run("benchmarks", "new", "quiz", "--kind", "choice", "--folder", tmp_path)
    path = tmp_path / "quiz.yaml"
    run("benchmarks", "register", path)
    assert "SCORE" in run("benchmarks", "diff", "quiz", "quiz@1")
    text = path.read_text("utf-8").replace('version: "1"', 'version: "2"').replace("Question:", "Q:")
    path.write_text(text, "utf-8")
    run("benchmarks", "register", path)
    shown = run("benchmarks", "diff", "quiz@1", "quiz@2", code=1)
    assert "quiz@1 -> quiz@2: PAIRED: the items are the same" in shown
    assert "template_digest: differs" in shown and "items_digest: same" in shown
    assert "-  Question: {{ question }}" in shown and "+  Q: {{ question }}" in shown
    assert run_json("benchmarks", "diff", "quiz@1", "quiz@2", code=1)["level"] == "PAIRED"
    assert "close: 'quiz'" in run("benchmarks", "diff", "quzi", "quiz", code=2)


def test_the_data_is_checked_on_request(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    run("benchmarks", "new", "quiz", "--kind", "choice", "--folder", tmp_path)
    path = tmp_path / "quiz.yaml"
    run("benchmarks", "register", path)
    assert "quiz@1: nothing found in 4 items" in run("benchmarks", "check", "quiz")
    path.write_text(path.read_text("utf-8").replace('"1"', '"2"').replace("level: 0.25", "level: 0.5"), "utf-8")
    run("benchmarks", "register", path)
    assert "chance_level: chance_level is 0.5" in run("benchmarks", "check", "quiz", code=1)
    checkpoint = write_checkpoint(tmp_path / "checkpoint")
    findings = run_json("benchmarks", "check", "quiz@1", "--checkpoint", checkpoint)
    assert findings == []


def test_tasks_of_lm_eval_are_imported(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    tasks = tmp_path / "tasks"
    tasks.mkdir()
    (tasks / "quiz.yaml").write_text(
        "task: quiz\ndataset_path: org/quiz\ntest_split: test\noutput_type: multiple_choice\n"
        'doc_to_text: "{{q}}"\ndoc_to_choice: [a, b]\ndoc_to_target: label\n'
    )
    (tasks / "code.yaml").write_text("task: code\nprocess_docs: !function utils.docs\n")
    out = tmp_path / "out"
    told = run("benchmarks", "import-lm-eval", tasks, "--out", out, "--revision", "org/quiz=" + "ab" * 20)
    assert "1 of 2 tasks became benchmarks" in told
    assert "refused code: process_docs: needs the Python function utils.docs" in told
    assert "ab" * 20 in (out / "quiz.yaml").read_text("utf-8")
    found = run_json("benchmarks", "import-lm-eval", tasks, "--dry-run")
    assert (found["converted"][0]["name"], found["unpinned"]) == ("quiz", ["org/quiz"])
    run("benchmarks", "import-lm-eval", tasks / "code.yaml", "--dry-run", code=1)
    assert "--dry-run" in run("benchmarks", "import-lm-eval", tasks, code=2)
    assert "never a branch" in run(
        "benchmarks", "import-lm-eval", tasks, "--dry-run", "--revision", "org/quiz=main", code=2
    )


def test_what_lies_on_the_hub_is_registered_by_name_and_not_fetched_by_accident(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HF_OFFLINE", raising=False)
    assert "close: 'mmlu'" in run("benchmarks", "register", "--hub", "mmul", code=2)
    assert "neither in the store nor in the local Hugging Face cache; set HF_OFFLINE=0" in run(
        "benchmarks", "register", "--hub", "mmlu", code=2
    )
