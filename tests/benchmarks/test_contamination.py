"""The benchmark's own code, small: what is planted is found by all, and a miss ends it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks import contamination


@pytest.mark.full
def test_every_plant_is_found_by_the_library_and_by_both_baselines(tmp_path: Path) -> None:
    lines = contamination.measured(tmp_path, megabytes=7, n_items=60, baseline_megabytes=7)
    assert [line["benchmark"].partition(",")[0] for line in lines] == ["contamination"] * 3
    assert lines[0]["plants_found"] == lines[0]["plants_of_13_words"] == 10
    assert lines[1]["items_found_at_8"] >= lines[1]["items_found_at_13"] == 10
    assert lines[0]["figure"] > 0 and lines[0]["table_mb"] > 0


def test_a_missed_plant_ends_the_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def one(_folder: Path, _side: str, grams: str, _rest: str) -> dict[str, Any]:
        return {"found": {n: list(range(9)) for n in grams.split(",")}, "contaminated": 0}

    monkeypatch.setattr(contamination, "_process", one)
    (tmp_path / "made.json").write_text('{"plants": 10, "text_bytes": 1}', "utf-8")
    with pytest.raises(SystemExit, match=r"missed plants \[9\]"):
        contamination.measured(tmp_path, megabytes=1, n_items=20, baseline_megabytes=1)
