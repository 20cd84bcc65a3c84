"""`compare --scores` on plain files: rules, exit codes for gates, and bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

Run = Callable[..., str]
RULE = {"name": "ship-it", "kind": "superiority", "metric": "primary", "components": {"maths": 1.0}}


def scores(path: Path, right: int, n: int = 100, benchmark: str = "maths") -> Path:
    rows = [{"item_id": f"q{k}", "score": int(k < right), "benchmark": benchmark} for k in range(n)]
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return scores(tmp_path / "good.jsonl", 80)


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    return scores(tmp_path / "bad.jsonl", 50)


@pytest.fixture
def rule(tmp_path: Path) -> Path:
    path = tmp_path / "rule.yaml"
    path.write_text(yaml.safe_dump({**RULE, "description": "what ships"}))
    return path


def test_two_files_give_a_verdict_and_touch_no_store(run: Run, home: Path, good: Path, bad: Path) -> None:
    assert "A better" in run("compare", "--scores", good, bad)
    assert "B better" in run("compare", "--scores", bad, good)
    assert not home.exists()


def test_json_is_the_whole_comparison(run_json: Callable[..., Any], good: Path, bad: Path) -> None:
    comparison = run_json("compare", "--scores", good, bad)
    (test,) = comparison["tests"]
    assert (test["n_pairs"], test["b"], test["c"], test["delta"]) == (100, 30, 0, 0.3)
    assert len(comparison["comparison_id"]) == 32


def test_a_rule_file_decides_and_stays_exploratory(
    run_json: Callable[..., Any], good: Path, bad: Path, rule: Path
) -> None:
    comparison = run_json("compare", "--scores", good, bad, "--rule", rule)
    assert (comparison["verdict"], comparison["rule_met"], comparison["exploratory"]) == ("A better", True, True)
    assert (comparison["rule"]["name"], comparison["rule"]["registered_at"]) == ("ship-it", "")


@pytest.mark.parametrize(
    ("fail_on", "a_better", "b_better", "same"),
    [("b-better", 0, 1, 0), ("indistinguishable", 0, 0, 1), ("not-a-better", 0, 1, 1)],
)
def test_a_gate_fails_on_the_verdict_it_names(
    run: Run, good: Path, bad: Path, fail_on: str, a_better: int, b_better: int, same: int
) -> None:
    run("compare", "--scores", good, bad, "--fail-on", fail_on, code=a_better)
    run("compare", "--scores", bad, good, "--fail-on", fail_on, code=b_better)
    run("compare", "--scores", good, good, "--fail-on", fail_on, code=same)


def test_a_gate_over_several_benchmarks_needs_a_rule_to_say_which_decides(
    run: Run, good: Path, bad: Path, rule: Path
) -> None:
    scores(good, 50, benchmark="prose")
    scores(bad, 80, benchmark="prose")
    said = run("compare", "--scores", good, bad, "--fail-on", "b-better", code=2)
    assert "--fail-on b-better has no verdict to look at: 2 benchmarks were tested" in said
    assert "--rule" in said
    run("compare", "--scores", good, bad, "--fail-on", "b-better", "--rule", rule)
    run("compare", "--scores", bad, good, "--fail-on", "b-better", "--rule", rule, code=1)


def test_a_report_is_written_where_it_was_asked_for(run: Run, tmp_path: Path, good: Path, bad: Path) -> None:
    out = tmp_path / "report.html"
    run("compare", "--scores", good, bad, "--out", out)
    assert "A better" in out.read_text("utf-8")
    absent = tmp_path / "absent" / "report.html"
    assert "cannot be written" in run("compare", "--scores", good, bad, "--out", absent, code=2)


def test_bad_input_is_named(run: Run, tmp_path: Path, good: Path, bad: Path, rule: Path) -> None:
    assert "absent.jsonl cannot be read" in run("compare", "--scores", tmp_path / "absent.jsonl", bad, code=2)
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"item_id": "q1", "score": 1}\n{"item_id": "q2", "skore": 1}\n')
    assert "broken.jsonl, line 2: no field 'score'; close: 'skore'" in run("compare", "--scores", broken, bad, code=2)
    assert "--alpha" in run("compare", "--scores", good, bad, "--alpha", "0", code=2)
    rule.write_text(yaml.safe_dump({**RULE, "kid": "x"}))
    assert "kid: unknown field; close: 'kind'" in run("compare", "--scores", good, bad, "--rule", rule, code=2)
    absent = tmp_path / "no-rule.yaml"
    assert "no-rule.yaml" in run("compare", "--scores", good, bad, "--rule", absent, code=2)


def test_what_cannot_be_paired_is_refused_as_not_comparable(run: Run, tmp_path: Path, good: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text('{"item_id": "z1", "score": 1, "benchmark": "maths"}\n')
    assert "pairing is by item_id" in run("compare", "--scores", good, other, code=3)
    apart = scores(tmp_path / "prose.jsonl", 3, benchmark="prose")
    assert "no benchmark in common" in run("compare", "--scores", good, apart, code=3)


def test_an_unknown_run_is_bad_input(run: Run) -> None:
    assert "no run 'nothing'" in run("compare", "nothing", "nothing", code=2)


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_report_is_as_wide_as_the_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch, good: Path, bad: Path, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    widest = max(map(len, run("compare", "--scores", good, bad).splitlines()))
    assert columns - 25 < widest <= columns
