"""The benchmark's own code, small."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks import guard


def test_the_line_is_whole(tmp_path: Path) -> None:
    line = guard.measured(tmp_path, n_rows=500, rounds=1)
    assert (line["benchmark"], line["rows"], line["expectations"]) == ("guard", 500, 8)
    assert line["figure"] > 0 and line["built_in"] > 0 and line["peak_mb"] > line["built_in_peak_mb"] > 0
