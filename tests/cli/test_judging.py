"""`graders register`, `judge` and `show` on the command line."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.graders.judged import write_judge
from tests.planned import N_GENERATED, write_checkpoint, write_suite

Run = Callable[..., str]
Json = Callable[..., Any]


@pytest.fixture
def imported(run: Run, tmp_path: Path) -> str:
    """A run of outputs without a model."""
    write_suite(tmp_path)
    run("benchmarks", "register", tmp_path / "colour-sums.yaml")
    rows = [{"item_id": f"g{k:03d}", "output": f"It is #### {2 * k + k % 2}"} for k in range(N_GENERATED)]
    path = tmp_path / "outputs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    printed = run("runs", "import", "--benchmark", "colour-sums", "--format", "jsonl", "--name", "outputs", path)
    return next(line.split()[1] for line in printed.splitlines() if line.startswith("run "))


@pytest.fixture(scope="module")
def judge_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("judge") / "judge", seed=7)


def test_a_judge_is_registered_judges_and_is_shown(
    run: Run, run_json: Json, imported: str, judge_checkpoint: Path, tmp_path: Path
) -> None:
    printed = run("graders", "register", write_judge(tmp_path, judge_checkpoint))
    grader = printed.split(":")[0]
    assert "logprob judge, since" in printed
    told = run_json("graders", "judge", imported[:12], "--benchmark", "colour-sums", "--grader", "helpful")
    assert (told["grader"], told["statuses"], told["reproducible"]) == (grader, {"ok": N_GENERATED}, True)
    assert 0 <= told["mean"] <= 1
    shown = json.loads(run("graders", "show", "helpful@1"))
    assert (shown["grader"], shown["judge"]["answers"]) == (grader, {" No": 0, " Yes": 1})
    assert sorted(shown["digests"]) == ["answer set", "checkpoint", "engine", "prompt"]
    assert "no grader 'helpfull' is registered; close: 'judge/helpful'" in run("graders", "show", "helpfull", code=2)
    assert [r["run_id"] for r in run_json("runs", "list")] == [imported]
    assert run_json("benchmarks", "list")[0]["name"] == "colour-sums"


def test_shards_that_are_run_elsewhere_are_told_and_then_finished(
    run: Run, run_json: Json, imported: str, judge_checkpoint: Path, tmp_path: Path
) -> None:
    run("graders", "register", write_judge(tmp_path, judge_checkpoint))
    judge = ("graders", "judge", imported, "--benchmark", "colour-sums", "--grader", "helpful")
    commands = [line for line in run(*judge, "--plan-only").splitlines() if line.startswith("python -m eval_tasks")]
    assert commands
    for command in commands:
        run(*shlex.split(command)[3:])
    assert f"{N_GENERATED} ok; mean " in run(*judge, "--plan-only")


def test_a_scorer_judges_too(run: Run, run_json: Json, imported: str) -> None:
    told = run_json("graders", "judge", imported, "--benchmark", "colour-sums", "--grader", "regex")
    assert told["grader"].startswith("rule/regex@1+")
    assert told["statuses"] == {"ok": N_GENERATED}
    assert "close: 'numeric'" in run(
        "graders", "judge", imported, "--benchmark", "colour-sums", "--grader", "numerics", code=2
    )
