"""`runs import` on the command line: from a file to a run, and two runs to a verdict."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.planned import N_GENERATED, write_suite


def written(path: Path, share: int) -> Path:
    rows = [{"item_id": f"g{k:03d}", "output": f"#### {2 * k + 1 if k % 4 < share else k}"} for k in range(N_GENERATED)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_two_files_become_runs_and_a_verdict(
    run: Callable[..., str], run_json: Callable[..., Any], tmp_path: Path
) -> None:
    write_suite(tmp_path)
    run("benchmarks", "register", tmp_path / "colour-sums.yaml")
    for name, share in (("good", 3), ("bad", 1)):
        words = ("--benchmark", "colour-sums", "--format", "jsonl", "--name", name)
        printed = run("runs", "import", *words, written(tmp_path / f"{name}.jsonl", share))
        assert f"imported {N_GENERATED} answers to {N_GENERATED} items" in printed
    bad, good = (r["run_id"] for r in run_json("runs", "list"))
    labels = {run_json("runs", "show", i)["run"]["request"]["engine"]["name"]: i for i in (bad, good)}
    assert "its rows are imported" in run("runs", "show", labels["good"])
    found = run_json("compare", labels["good"], labels["bad"])
    assert found["tests"][0]["verdict"] == "A better"
    assert found["tests"][0]["compatibility"] == "PAIRED"


def test_a_step_needs_its_training_run(run: Callable[..., str], tmp_path: Path) -> None:
    words = ("--benchmark", "x", "--format", "jsonl", "--name", "y", "--step", 3)
    assert "go together" in run("runs", "import", *words, written(tmp_path / "a.jsonl", 1), code=2)
