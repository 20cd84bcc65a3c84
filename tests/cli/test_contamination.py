"""`contamination`, as a person uses it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eval_tasks.cli import main
from tests.contamination.corpora import sentence, write_jsonl

YAML = """
name: quiz
version: '1'
kind: generation
licence: MIT
source: {{uri: quiz.jsonl, blake3: {digest}, format: jsonl}}
item: {{id: item_id, target: answer}}
prompt: {{item: "Question: {{{{ question }}}}\\nAnswer:", target: "{{{{ answer }}}}", stop: ["\\n"]}}
scorer: {{name: exact_match}}
primary_metric: exact_match
plausible_range: {{exact_match: [0, 1]}}
"""


@pytest.fixture
def quiz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A registered benchmark of 24 items, and a corpus that holds the first of them with its answer."""
    from eval_tasks.digests import digest_bytes

    monkeypatch.setenv("CHECKPOINT_EVAL_HOME", str(tmp_path / "home"))
    rows = [{"item_id": f"q{n}", "question": sentence(n * 40, 30), "answer": f"reply{n}"} for n in range(24)]
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    (tmp_path / "quiz.jsonl").write_bytes(data)
    (tmp_path / "quiz.yaml").write_text(YAML.format(digest=digest_bytes(data)), "utf-8")
    assert main(["benchmarks", "register", str(tmp_path / "quiz.yaml")]) == 0
    write_jsonl(tmp_path / "web/a.jsonl", [f"{rows[0]['question']}? {rows[0]['answer']}", "something else"])
    (tmp_path / "web/notes.md").write_text("no corpus file", "utf-8")
    capsys.readouterr()
    return tmp_path / "web"


def test_register_check_and_show(quiz: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["contamination", "register", "web", str(quiz), "--id-field", "id"]) == 0
    assert "web: 1 files" in (out := capsys.readouterr().out) and ".md (1)" in out
    assert main(["contamination", "show"]) == 0
    assert "never checked" in capsys.readouterr().out
    assert main(["contamination", "check", "quiz", "--json"]) == 0
    (check,) = json.loads(capsys.readouterr().out)
    assert (check["benchmark"], check["corpus"]) == ("quiz@1", "web")
    assert check["counts"] == {"clean": 23, "contaminated": 1}
    assert main(["contamination", "scan"]) == 0
    assert "nothing to scan" in capsys.readouterr().out
    assert main(["contamination", "show", "quiz", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["item_id"], row["question_share"], row["answer_share"]) == (
        "q0",
        {"8": 1.0, "13": 1.0},
        {"8": None, "13": None},
    )
    assert (row["n_answer_near"], row["examples"][0]["document"]) == (1, "d0")
    assert main(["contamination", "show", "quiz", "--item", "q0"]) == 0
    assert "its answer near, in a.jsonl row 1 (d0):" in capsys.readouterr().out


def test_plans_and_shards_as_pods_run_them(quiz: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["contamination", "register", "web", str(quiz)])
    capsys.readouterr()
    assert main(["contamination", "scan", "--plan-only", "--json"]) == 0
    (planned,) = json.loads(capsys.readouterr().out)
    assert planned["shards"] == 1
    assert main(["contamination", "scan-shard", "--scan", planned["plan"], "--shard", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_documents"] == 2
    assert main(["contamination", "scan", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["counts"]["contaminated"] == 1


def test_recall_writes_nothing(quiz: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["contamination", "register", "web", str(quiz)])
    capsys.readouterr()
    assert main(["contamination", "recall", "--benchmark", "quiz", "--corpus", "web", "--json"]) == 0
    by_kind = {each["kind"]: each for each in json.loads(capsys.readouterr().out)["recall"]}
    assert by_kind["whole"]["n_contaminated"] == by_kind["whole"]["n_items"] == 3
    assert by_kind["not planted"]["found"] == {"8": 0, "13": 0}
    assert main(["contamination", "show", "quiz"]) == 2


def test_bad_names_say_what_to_do(quiz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["contamination", "check", "quiz"]) == 2
    assert "no corpus is registered" in capsys.readouterr().err
    assert main(["contamination", "register", "web", str(tmp_path / "absent")]) == 2
    assert "neither a folder nor a file" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["contamination", "register", "web", str(tmp_path / "empty")]) == 2
    assert "no file at all" in capsys.readouterr().err
    main(["contamination", "register", "web", str(quiz)])
    assert main(["contamination", "scan", "--corpus", "wep"]) == 2
    assert "close: 'web'" in capsys.readouterr().err
    main(["contamination", "check", "quiz"])
    assert main(["contamination", "show", "quiz", "--item", "q99"]) == 2
    assert "no item 'q99'" in capsys.readouterr().err
