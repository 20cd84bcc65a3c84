"""`graders agreement`, `verdicts`, `qualify` and `use` on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.graders.agreement_sets import SAMPLE
from tests.planned import write_suite

Run = Callable[..., str]
RunJson = Callable[..., Any]
N = 36


def labels(path: Path, *, raters: int = 1, n: int = 12) -> Path:
    rows = [
        {"item_id": f"i{k}", "output": str(k), "rater": f"r{r}", "label": int(k % 3 > 0)}
        for k in range(n)
        for r in range(raters)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def verdicts(path: Path, said: dict[str, float]) -> Path:
    path.write_text("item_id,label\n" + "".join(f"{i},{v:g}\n" for i, v in said.items()), "utf-8")
    return path


def sample_says(rater: str) -> dict[str, float]:
    rows = [json.loads(line) for line in SAMPLE.read_text("utf-8").splitlines()]
    return {row["item_id"]: row["label"] for row in rows if row["rater"] == rater}


def test_the_shipped_sample_is_made_and_shown(run: Run, run_json: RunJson) -> None:
    shown = run("graders", "agreement", "sample", "--shipped")
    assert "64 outputs (arithmetic 16, facts 16, format 16, reasoning 16) labelled by first, second" in shown
    found = run_json("graders", "agreement", "sample", "--human-ceiling")
    assert list(found["human"]) == ["all", "arithmetic", "facts", "format", "reasoning"]
    (pair,) = found["human"]["all"]["pairs"]
    assert pair[:2] == ["first", "second"]
    assert pair[2]["n_agree"] == 56
    assert found["graders"] == {}


def test_graders_are_held_against_people_by_category(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    run("graders", "agreement", "sample", "--shipped")
    said = sample_says("first")
    file = verdicts(tmp_path / "judge.csv", said | {"facts-01": 1 - said["facts-01"]})
    assert "64 verdicts on the 64 outputs" in run("graders", "verdicts", "sample", file, "--grader", "judge@1")
    by = run_json("graders", "agreement", "sample")["graders"]["judge@1"]
    assert (by["all"]["n"], by["all"]["n_agree"]) == (56, 55)
    assert (by["facts"]["n"] - by["facts"]["n_agree"], by["format"]["agreement"]) == (1, 1.0)
    assert "judge@1" in run("graders", "agreement", "sample")


def test_one_rater_is_shown_and_refused_where_the_ceiling_is_asked_for(run: Run, tmp_path: Path) -> None:
    file = labels(tmp_path / "one.jsonl")
    assert "not measurable with one rater" in run("graders", "agreement", "solo", "--from", file)
    message = run("graders", "agreement", "solo", "--human-ceiling", code=2)
    assert "'solo@1': how far people agree is not measurable with one rater; have a second person label" in message


def test_three_raters_have_a_kappa_of_all(run: Run, tmp_path: Path) -> None:
    shown = run("graders", "agreement", "three", "--from", labels(tmp_path / "three.jsonl", raters=3))
    assert "Fleiss' kappa" in shown


def test_a_qualification_names_what_stands_in_its_way(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    run("graders", "agreement", "sample", "--shipped")
    for grader, rater in (("judge@1", "first"), ("judge@2", "second")):
        run("graders", "verdicts", "sample", verdicts(tmp_path / "v.csv", sample_says(rater)), "--grader", grader)
    words = ("graders", "qualify", "judge@2", "--against", "judge@1", "--set", "sample")
    printed = run(*words, "--margin", 0.02, code=1)
    assert "NOT ADOPTED: category 'arithmetic': UNDERPOWERED, agreement 100.0 % against 100.0 % on 13 labels" in printed
    found = run_json(*words, "--margin", 0.02, code=1)
    assert not found["adopted"]
    assert found["qualification_id"] in printed
    assert "ADOPTED: not inferior in any category by 60 points or more" in run(*words, "--margin", 0.6)
    assert "margin 0" in run(*words, "--margin", 0, code=2)


@pytest.fixture
def labelled_run(run: Run, tmp_path: Path) -> str:
    """An imported run, graded by its scorer and by two people."""
    write_suite(tmp_path)
    run("benchmarks", "register", tmp_path / "colour-sums.yaml")
    rows = [{"item_id": f"g{k:03d}", "output": f"#### {2 * k + 1 if k % 4 else k}"} for k in range(N)]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    printed = run("runs", "import", "--benchmark", "colour-sums", "--format", "jsonl", "--name", "good", path)
    run_id = next(line.split()[1] for line in printed.splitlines() if line.startswith("run "))
    said = [
        {"item_id": f"g{k:03d}", "rater": rater, "label": int(k % 4 > 0 or k == odd)}
        for k in range(24)
        for rater, odd in (("ann", 4), ("ben", 8))
    ]
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in said), "utf-8")
    run("graders", "import-labels", path, "--benchmark", "colour-sums", "--run", run_id, "--grader", "panel")
    return run_id


def test_a_set_is_made_of_a_runs_labels_and_its_scorer_is_held_against_them(
    run: Run, run_json: RunJson, labelled_run: str
) -> None:
    words = ("--from-run", labelled_run, "--benchmark", "colour-sums", "--labels", "human/panel@1")
    found = run_json("graders", "agreement", "sums", *words)
    assert found["set"]["runs"] == [labelled_run]
    assert (found["set"]["n_items"], found["set"]["raters"]) == (24, ["ann", "ben"])
    assert found["human"]["all"]["pairs"][0][2]["n_agree"] == 22
    ((grader, by),) = found["graders"].items()
    assert grader.startswith("gsm8k@")
    assert (by["all"]["n"], by["all"]["n_agree"]) == (22, 22)
    assert found == run_json("graders", "agreement", "sums", *words)


def test_a_grader_in_use_is_on_record(run: Run, run_json: RunJson, labelled_run: str) -> None:
    run("graders", "use", "judge@1", "--benchmark", "colour-sums", "--reason", "the first one")
    assert "judge@1" in run("graders", "list")
    assert "the first one" in run("graders", "list")
    (panel,) = run_json("graders", "list")
    assert (panel["name"], panel["in_use"]) == ("human/panel", [])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nope",), "no agreement set 'nope'"),
        (("x", "--shipped", "--from", SAMPLE), "give one"),
        (("x", "--from-run", "RUN"), "needs --benchmark and --labels"),
        (("x", "--from-run", "RUN", "--benchmark", "nope", "--labels", "human/panel@1"), "has no benchmark 'nope'"),
        (
            ("x", "--from-run", "RUN", "--benchmark", "colour-sums", "--labels", "human/other@1"),
            "no scores by grader 'human/other@1'",
        ),
    ],
)
def test_what_no_set_can_be_made_of_is_named(
    run: Run, labelled_run: str, words: tuple[object, ...], message: str
) -> None:
    given = [labelled_run if word == "RUN" else word for word in words]
    assert message in run("graders", "agreement", *given, code=2)


def test_a_scorers_own_rows_are_no_raters_labels(run: Run, run_json: RunJson, labelled_run: str) -> None:
    scorer = run_json("runs", "show", labelled_run)["measurements"][0]["grader"]
    words = ("--from-run", labelled_run, "--benchmark", "colour-sums", "--labels", scorer)
    assert "do not say what each rater said" in run("graders", "agreement", "x", *words, code=2)


def test_verdicts_on_what_the_set_has_not_are_named(run: Run, tmp_path: Path) -> None:
    run("graders", "agreement", "sample", "--shipped")
    file = verdicts(tmp_path / "v.csv", {"facts-99": 1})
    message = run("graders", "verdicts", "sample", file, "--grader", "judge@1", code=2)
    assert "line 2: agreement set 'sample@1' has no item 'facts-99'" in message
