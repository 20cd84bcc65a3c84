"""`seeds` and arms of several runs, as a user types them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.settings import Settings
from eval_tasks.store import open_store
from tests.compare.test_seed_arms import BENCH, run_of

Run = Callable[..., str]


@pytest.fixture
def runs(run: Run, home: Path) -> list[str]:
    """Six runs of two recipes: the second half of each name is its seed."""
    run("migrate")
    with open_store(Settings()) as store:
        made = []
        for number, (name, rate) in enumerate((("new", 0.72), ("old", 0.55)), start=1):
            for seed in range(3):
                at = run_of(store, 10 * number + seed, rate + 0.02 * seed, f"{name}-{seed}", BENCH, status="closed")
                made.append(store.catalog.update_run(at.run_id, step=100).run_id)
    return made


def test_a_study_is_recorded_listed_shown_and_used(run: Run, run_json: Callable[..., Any], runs: list[str]) -> None:
    assert "seed studies: none" in run("seeds", "list")
    said = run("seeds", "record", "mine", *runs[3:], "--tokens", 5_000_000)
    assert "mine@1: 3 runs, 5M tokens, 100 steps" in said and "3 x 400" in said
    assert run_json("seeds", "show", "mine@1")["reference"] == "mine@1"
    assert [s["name"] for s in run_json("seeds", "list")] == ["mine"]
    assert "5M tokens" in run("seeds", "list")
    found = run_json("compare", runs[0], runs[3], "--seed-study", "mine")
    assert found["recipes"]["study"] == "mine@1" and found["lineage"] == "trained apart"
    text = run("compare", runs[0], runs[3])
    assert "Do these checkpoints differ? A better on bench." in text and "Do the recipes differ?" in text
    assert "close: 'mine'" in run("compare", runs[0], runs[3], "--seed-study", "mina", code=2)
    assert "close: 'mine'" in run("seeds", "show", "mina", code=2)
    assert "two seeds" not in run("seeds", "record", "one", runs[0], code=2)


def test_arms_of_several_runs(run: Run, run_json: Callable[..., Any], runs: list[str], tmp_path: Path) -> None:
    a, b = ",".join(runs[:3]), ",".join(runs[3:])
    found = run_json("compare", a, b)
    assert (found["further_a"], found["recipes"]["n_seeds"]) == (runs[1:3], [3, 3])
    out = tmp_path / "report.html"
    seeded = [",".join(f"{r}@{k}" for k, r in enumerate(arm)) for arm in (runs[:3], runs[3:])]
    found = run_json("compare", *seeded, "--out", out)
    assert found["recipes"]["paired_by_seed"] and found["seeds_a"] == ["0", "1", "2"]
    assert "3 pairs of runs that share a training seed" in out.read_text("utf-8")
    assert found["diagnoses"] == []
    assert "arm A has 2 runs" in run("compare", ",".join(runs[:2]), b, code=2)
    assert "an empty run" in run("compare", f"{runs[0]},,{runs[1]}", b, code=2)
    assert "is in both arms" in run("compare", ",".join(runs[:3]), ",".join([runs[0], *runs[3:]]), code=2)


def test_a_study_is_imported(run: Run, run_json: Callable[..., Any], runs: list[str], tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(
        "name: published\nsource: table 3\nmeasured_at: 2024-06-14\nscale: {parameters: 7000000000}\n"
        "benchmarks: [{benchmark: bench, metric: acc, n: 1000, sd: 0.006, n_seeds: 5, discordance: 0.05}]\n"
    )
    assert "published@1: 5 runs, 7B parameters, measured 2024-06-14" in run("seeds", "import", path)
    assert run_json("seeds", "import", path)["version"] == 1
    found = run_json("compare", runs[0], runs[3])
    terms = found["recipes"]["tests"][0]["variances"]
    assert [t["standing"] for t in terms if t["source"] == "training seed"] == ["EXTRAPOLATED"]
    path.write_text(path.read_text().replace("name: published", "name: wide").replace("sd: 0.006", "sd: 0.15"))
    run("seeds", "import", path)
    wide = ("compare", runs[0], runs[3], "--seed-study", "wide")
    found = run_json(*wide)
    verdicts = [found["tests"][0]["verdict"], found["recipes"]["tests"][0]["verdict"]]
    assert verdicts == ["A better", "INDISTINGUISHABLE"]
    run(*wide, "--fail-on", "indistinguishable", code=1)
    path.write_text(path.read_text().replace("n_seeds: 5", "n_seeds: 1"))
    assert "n_seeds" in run("seeds", "import", path, code=2)


def test_files_of_scores_may_be_arms_too(run_json: Callable[..., Any], home: Path, tmp_path: Path) -> None:
    made = []
    for k in range(6):
        rows = [{"item_id": f"q{i}", "score": int((i * (7 + k)) % 10 < 5 + k // 3)} for i in range(200)]
        made.append(tmp_path / f"run-{k},x@y.jsonl")
        made[-1].write_text("".join(json.dumps(row) + "\n" for row in rows))
    plain = [path.rename(tmp_path / f"s{k}.jsonl") for k, path in enumerate(made[1:], start=1)]
    arms = [",".join(map(str, part)) for part in ([*plain[:2], plain[4]], plain[2:4])]
    found = run_json("compare", "--scores", arms[0], f"{arms[1]},{made[0].rename(tmp_path / 's0.jsonl')}")
    assert found["recipes"]["n_seeds"] == [3, 3] and found["lineage"] == "not known"
    odd = plain[0].rename(tmp_path / "odd,name@1.jsonl")
    assert run_json("compare", "--scores", odd, plain[1])["further_a"] == []
    assert not home.exists()


def test_files_of_scores_have_no_study(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"item_id": "x", "score": 1}) + "\n")
    assert "files of --scores name no training run" in run(
        "compare", "--scores", path, path, "--seed-study", "x", code=2
    )
