"""`regrade` on the command line: a window of runs, a dry run, a report, and nothing twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.settings import Settings
from eval_tasks.store import open_store
from tests.graders.judged import write_judge
from tests.planned import N_GENERATED, write_checkpoint, write_suite

Run = Callable[..., str]
Json = Callable[..., Any]


@pytest.fixture
def imported(run: Run, tmp_path: Path) -> list[str]:
    """Two runs of outputs without a model; what stands last in an output is right more often in the second."""
    write_suite(tmp_path)
    run("benchmarks", "register", tmp_path / "colour-sums.yaml")
    found = []
    for name, right in (("first", 9), ("second", 20)):
        rows = [
            {"item_id": f"g{k:03d}", "output": f"It is #### {2 * k + 1 if k < right else 0}"}
            for k in range(N_GENERATED)
        ]
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        printed = run("runs", "import", "--benchmark", "colour-sums", "--format", "jsonl", "--name", name, path)
        found.append(next(line.split()[1] for line in printed.splitlines() if line.startswith("run ")))
    return found


def stored() -> tuple[int, dict[str, list[str]]]:
    """How many runs there are, and the graders of each."""
    with open_store(Settings()) as store:
        runs = store.catalog.runs(judging=None)
        graders = {r.run_id: store.scores.graders(r.run_id, r.request.benchmark_ids[0]) for r in runs if not r.judging}
        return len(runs), graders


def test_a_window_is_regraded_by_a_judge_once(run: Run, run_json: Json, imported: list[str], tmp_path: Path) -> None:
    run("graders", "register", write_judge(tmp_path, write_checkpoint(tmp_path / "judge", seed=7)))
    before = stored()
    wanted = ("regrade", "--grader", "helpful", "--since", "2026-01-01")
    dry = run_json(*wanted, "--dry-run")
    assert sorted(row["run_id"] for row in dry) == sorted(imported)
    assert {(row["done"], row["n_questions"]) for row in dry} == {(False, N_GENERATED)}
    assert "2 of 2 to do: 72 outputs, 72 questions to a judge" in run(*wanted, "--dry-run")
    assert stored() == before
    page = tmp_path / "moved.html"
    told = run(*wanted, "--out", page)
    assert "2 benchmarks of runs, 2 scored now, 0 before" in told
    assert "What regrading moved" in page.read_text("utf-8")
    after = stored()
    assert after[0] == before[0] + 2  # the judge's
    assert all(
        graders[0].startswith("gsm8k@") and graders[1].startswith("judge/helpful@1+") for graders in after[1].values()
    )
    moved = run_json(*wanted)["moved"]
    assert [m["run_id"] for m in moved] == [row["run_id"] for row in dry]
    # Runs of one second stand in the order of their ids.
    old = {m["run_id"]: m["total"]["old"] for m in moved}
    assert [old[run_id] for run_id in imported] == pytest.approx([9 / N_GENERATED, 20 / N_GENERATED])
    assert "0 scored now, 2 before" in run(*wanted)
    assert stored() == after
    assert "regrade-html report" in run("runs", "show", imported[0])


def test_a_second_opinion_of_named_runs_leaves_their_numbers(run: Run, run_json: Json, imported: list[str]) -> None:
    before = run_json("runs", "show", imported[0])["measurements"]
    wanted = ("regrade", imported[0][:12], "--grader", "regex", "--benchmark", "colour-sums")
    [moved] = run_json(*wanted)["moved"]
    assert (moved["label"], moved["new_grader"].split("@")[0]) == ("first", "rule/regex")
    assert run_json("runs", "show", imported[0])["measurements"] == before
    assert len(stored()[1][imported[1]]) == 1


def test_a_newer_version_of_its_own_scorer_becomes_a_runs_numbers(
    run: Run, run_json: Json, imported: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from eval_tasks.scoring import registry

    known = registry.find_scorer("gsm8k")
    newer = replace(known, version="99", function=lambda case: [replace(m, value=1.0) for m in known.function(case)])
    monkeypatch.setitem(registry._SCORERS, "gsm8k", newer)
    moved = run_json("regrade", "--grader", "own")["moved"]
    assert {(m["old_grader"].split("+")[0], m["new_grader"].split("+")[0], m["total"]["new"]) for m in moved} == {
        ("gsm8k@2", "gsm8k@99", 1.0)
    }
    shown = run_json("runs", "show", imported[0])["measurements"]
    primary = next(m for m in shown if m["primary"])
    assert (primary["score"], primary["grader"].split("+")[0]) == (1.0, "gsm8k@99")
    compared = run_json("compare", imported[0], imported[1])
    assert compared["tests"][0]["grader"].startswith("gsm8k@99+")
    old = moved[0]["old_grader"]
    assert run_json("compare", imported[0], imported[1], "--grader", old)["tests"][0]["score_a"] == pytest.approx(
        9 / 36
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--grader", "helpfull"), "no grader 'helpfull' of stored outputs"),
        (("--grader", "exact_match"), "no closed run in the window has a benchmark for grader 'exact_match'"),
        (("--grader", "gsm8k", "--training-run", "other"), "no closed run in the window"),
        (("--grader", "gsm8k", "--since", "soon"), "not a time: 'soon'"),
        (("--grader", "gsm8k", "--since", "2026-02-01", "--until", "2026-01-01"), "there is no time in it"),
        (("--grader", "gsm8k", "--against", "nobody@1"), "no scores by grader 'nobody@1'"),
        (("--grader", "human/panel@1"), "no grader 'human/panel@1' of stored outputs"),
    ],
)
def test_what_cannot_be_regraded_is_refused_by_name(
    run: Run, imported: list[str], arguments: tuple[str, ...], message: str
) -> None:
    assert message in run("regrade", *arguments, code=2)
