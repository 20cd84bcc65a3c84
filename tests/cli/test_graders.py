"""`graders` on the command line: a sample goes out, comes back labelled, and joins the paired tests."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.planned import N_GENERATED, write_suite

GRADER = ("--benchmark", "colour-sums", "--grader", "panel")


@pytest.fixture
def runs(run: Callable[..., str], tmp_path: Path) -> tuple[str, str]:
    """Two imported runs, good and bad."""
    write_suite(tmp_path)
    run("benchmarks", "register", tmp_path / "colour-sums.yaml")
    ids = []
    for name, share in (("good", 3), ("bad", 1)):
        rows = [
            {"item_id": f"g{k:03d}", "output": f"#### {2 * k + 1 if k % 4 < share else k}"} for k in range(N_GENERATED)
        ]
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        words = ("--benchmark", "colour-sums", "--format", "jsonl", "--name", name)
        printed = run("runs", "import", *words, path)
        ids.append(next(line.split()[1] for line in printed.splitlines() if line.startswith("run ")))
    return ids[0], ids[1]


def labelled(path: Path, label: Callable[[int], str]) -> Path:
    """The sample with its blanks filled in."""
    with path.open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    for n, row in enumerate(rows):
        row |= {"rater": "ann", "label": label(n)}
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_a_sample_comes_back_as_a_grader_of_the_paired_test(
    run: Callable[..., str], run_json: Callable[..., Any], runs: tuple[str, str], tmp_path: Path
) -> None:
    for run_id, share in zip(runs, (9, 2), strict=True):
        out = tmp_path / f"{run_id}.csv"
        run("graders", "sample", run_id, "--benchmark", "colour-sums", "--n", 20, "--out", out)
        labels = labelled(out, lambda n, share=share: "right" if n % 10 < share else "wrong")
        assert "20 labels of 20 items by 1 raters" in run("graders", "import-labels", labels, *GRADER, "--run", run_id)
    by_people = run_json("compare", *runs, "--grader", "human/panel@1")
    test = by_people["tests"][0]
    assert (test["n_pairs"], test["score_a"], test["score_b"]) == (20, 0.9, 0.2)
    assert test["grader"] == "human/panel@1"
    by_scorer = run_json("compare", *runs)
    assert by_scorer["tests"][0]["n_pairs"] == N_GENERATED
    assert by_scorer["tests"][0]["grader"].startswith("gsm8k@")
    assert by_scorer["comparison_id"] != by_people["comparison_id"]
    assert "Both arms are scored by human/panel@1." in run("compare", *runs, "--grader", "human/panel@1")
    assert run_json("graders", "list")[0]["kind"] == "human"


def test_labels_do_not_take_the_place_of_the_scorer(
    run: Callable[..., str], run_json: Callable[..., Any], runs: tuple[str, str], tmp_path: Path
) -> None:
    before = run_json("aggregate", runs[0])
    path = tmp_path / "labels.jsonl"
    path.write_text('{"item_id": "g000", "rater": "ann", "label": 0}\n', "utf-8")
    run("graders", "import-labels", path, *GRADER, "--run", runs[0])
    assert run_json("aggregate", runs[0]) == before


def test_a_grader_that_did_not_score_both_runs_is_named(run: Callable[..., str], runs: tuple[str, str]) -> None:
    assert "grader 'human/other@1' scored no benchmark" in run("compare", *runs, "--grader", "human/other@1", code=3)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"item_id": "g999", "rater": "ann", "label": 1}'], "no answer to item 'g999'"),
        (['{"item_id": "g001", "rater": "ann", "label": 1}'] * 2, "rater 'ann' labelled item 'g001' twice"),
        (['{"item_id": "g001", "label": 1}'], "no 'rater'"),
        (['{"item_id": "g001", "rater": "ann", "label": "maybe"}'], "label 'maybe'"),
        (['{"item_id": "g001", "rater": "ann", "label": NaN}'], "label nan; expected a number or one of"),
        (['{"item_id": "g001", "rater": "ann", "score": 1e400}'], "label inf; expected a number or one of"),
        (['{"item_id": "g001", "rater": "ann", "score": 0.5}'], "is right or wrong"),
        (['{"item_id": "g001", "rater": "ann", "label": 1, "score": 1}'], "both a label and a score"),
        (['{"item_id": "g001", "rater": "ann"}'], "no field 'label' or 'score'"),
        (['{"item_id": "g001", "ra'], "not JSON"),
        ([], "no labels"),
    ],
)
def test_labels_that_do_not_fit_are_named(
    run: Callable[..., str], runs: tuple[str, str], tmp_path: Path, lines: list[str], message: str
) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text("\n".join(lines), "utf-8")
    assert message in run("graders", "import-labels", path, *GRADER, "--run", runs[0], code=2)


def test_rows_that_nobody_filled_in_are_left_out(
    run: Callable[..., str], runs: tuple[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "sample.csv"
    run("graders", "sample", runs[0], "--benchmark", "colour-sums", "--n", 10, "--out", out)
    lines = out.read_text("utf-8").splitlines()
    out.write_text("\n".join([*lines[:-1], lines[-1] + "x"]), "utf-8")
    assert "no 'rater'" in run("graders", "import-labels", out, *GRADER, "--run", runs[0], code=2)
    out.write_text("\n".join(lines), "utf-8")
    assert "no labels" in run("graders", "import-labels", out, *GRADER, "--run", runs[0], code=2)


def test_raters_vote_and_a_tie_is_excluded(
    run: Callable[..., str], run_json: Callable[..., Any], runs: tuple[str, str], tmp_path: Path
) -> None:
    votes = {"g000": (1, 1, 0), "g001": (1, 0), "g002": (0, 0, 1)}
    rows = [
        {"item_id": i, "rater": f"r{n}", "label": vote} for i, given in votes.items() for n, vote in enumerate(given)
    ]
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    for run_id in runs:
        run("graders", "import-labels", path, *GRADER, "--run", run_id)
    test = run_json("compare", *runs, "--grader", "human/panel@1")["tests"][0]
    assert (test["n_pairs"], test["score_a"]) == (2, 0.5)
