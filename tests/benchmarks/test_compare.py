"""The benchmark's own code, small."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks import compare


def test_ours_and_pandas_find_the_same_and_the_line_is_whole(tmp_path: Path) -> None:
    line = compare.measured(tmp_path, n_benchmarks=2, n_items=50, rounds=1, n_other=3)
    assert (line["benchmark"], line["items"], line["among_other_runs"]["runs"]) == ("compare", 100, 3)
    assert line["ratio"] == pytest.approx(line["baseline"] / line["figure"], rel=0.2)
    assert line["figure"] > 0 and line["peak_mb"] > 0


def test_other_p_values_end_the_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def one(folder: Path, side: str, run_a: str, run_b: str) -> dict[str, float]:
        cost = {"cpu_seconds": 1.0, "with_imports": 2.0, "peak_mb": 3.0}
        return {**cost, "n_pairs": 100, "p_sum": 1.0 if side == "ours" else 2.0}

    monkeypatch.setattr(compare, "_process", one)
    with pytest.raises(SystemExit, match="disagree"):
        compare.measured(tmp_path, n_benchmarks=1, n_items=10, rounds=1, n_other=1)
