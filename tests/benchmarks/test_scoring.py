"""The benchmark's own code, small."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks import scoring, scoring_data


def test_a_regrading_is_measured_from_the_store_and_back(tmp_path: Path) -> None:
    line = scoring.regraded(tmp_path / "home", 60)
    assert (line["name"], line["outputs"], line["bound"]) == ("regrade", 60, 60.0)
    assert line["figure"] > 0 and line["met"]
    assert line["peak_mb"] > 0  # of this process, with whatever other tests have loaded


def test_a_scorer_alone_and_what_was_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "N_EXACT", 50)
    monkeypatch.setattr(scoring, "REFERENCE_PYTHON", scoring.REPOSITORY / "absent/bin/python")
    monkeypatch.setattr(scoring, "GOLDEN", tmp_path / "absent")
    line = scoring.alone(tmp_path, "exact_match", 1)
    assert line["found"]["exact_match"] == sum(r["output"] == r["answer"] for r in scoring_data.exact_rows(50))
    assert line["reference"].startswith("skipped: no absent/bin/python")
    assert "no public data" in scoring.alone(tmp_path, "ifeval", 1)["skipped"]


def test_other_counts_than_the_references_end_the_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "N_EXACT", 50)
    monkeypatch.setattr(scoring, "REFERENCE_PYTHON", Path(__file__))
    monkeypatch.setattr(scoring, "_reference", lambda *_: {"found": {"exact_match": -1.0}, "seconds": 1.0})
    with pytest.raises(SystemExit, match="disagree"):
        scoring.alone(tmp_path, "exact_match", 1)
