"""`diagnose` on plain files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write(path: Path, values: list[int]) -> Path:
    rows = [{"item_id": f"i{k}", "score": v, "category": "sums" if k < 10 else "prose"} for k, v in enumerate(values)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_groups_items_and_report(run: Callable[..., str], run_json: Callable[..., Any], tmp_path: Path) -> None:
    a, b = write(tmp_path / "a.jsonl", [0] * 10 + [1] * 30), write(tmp_path / "b.jsonl", [1] * 40)
    said = run("diagnose", "--scores", a, b, "--out", tmp_path / "page.html")
    assert "10 of 40 items flipped: 10 lost" in said and "i0 (lost: B right, A wrong; category sums)" in said
    assert "Items that flipped" in (tmp_path / "page.html").read_text("utf-8")
    (found,) = run_json("diagnose", "--scores", a, b, "--items", 2)
    assert (found["lost"], len(found["items"]), found["by"][0]["groups"][0]["group"]) == (10, 2, "sums")


def test_bad_input_has_its_exit_codes(run: Callable[..., str], tmp_path: Path) -> None:
    a = write(tmp_path / "a.jsonl", [1, 0])
    assert "cannot be read" in run("diagnose", "--scores", a, tmp_path / "absent", code=2)
    other = tmp_path / "b.jsonl"
    other.write_text('{"item_id": "i0", "score": 1, "benchmark": "else"}\n')
    assert "no benchmark in common" in run("diagnose", "--scores", a, other, code=3)
