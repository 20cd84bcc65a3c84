"""What a seed study's file may say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eval_tasks.errors import UserError
from eval_tasks.registry import load_seed_study_file

HEAD = "name: s\nsource: table 3\nmeasured_at: 2024-06-14\n"
ONE = "benchmark: mmlu, metric: acc, n: 100"
WHOLE = f"{{{ONE}, scores: [0.6, 0.61, 0.62]}}"


def load(folder: Path, text: str, head: str = HEAD) -> Any:
    path = folder / "study.yaml"
    path.write_text(head + text, "utf-8")
    return load_seed_study_file(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"benchmarks: [{{{ONE}, scores: [0.6]}}]", "a study has 3 runs at least"),
        (f"benchmarks: [{{{ONE}, scores: [0.6, 0.6, .nan]}}]", "a score is no finite number"),
        (f"benchmarks: [{{{ONE}, scores: [60.1, 61.2, 60]}}]", "61.5 points are 0.615"),
        (f"benchmarks: [{{{ONE}, sd: 0.6, n_seeds: 3}}]", "0.6 points are 0.006"),
        (f"benchmarks: [{{{ONE}, sd: .nan, n_seeds: 3}}]", "sd"),
        (f"benchmarks: [{{{ONE}, sd: 0.01}}]", "sd needs n_seeds"),
        (f"benchmarks: [{{{ONE}, sd: 0.01, n_seeds: 2}}]", "n_seeds"),
        (f"benchmarks: [{{{ONE}}}]", "give either scores"),
        (f"benchmarks: [{{{ONE}, scores: [0.6, 0.61, 0.62], sd: 0.01, n_seeds: 3}}]", "give either scores"),
        (f"benchmarks: [{{{ONE}, scores: [0.6, 0.61, 0.62], n_seeds: 4}}]", "n_seeds is 4 and there are 3 scores"),
        (f"benchmarks: [{{{ONE}, scores: [0.6, 0.61, 0.62], discordance: 1.5}}]", "at most 1"),
        (
            f"benchmarks: [{WHOLE}, {{{ONE}, sd: 0.01, n_seeds: 3}}]",
            "twice here: mmlu acc",
        ),
        ("benchmarks: [{benchmark: mmlu, metric: acc, n: 0, scores: [0.6, 0.61, 0.62]}]", "n"),
        ("", "give either benchmarks"),
        (
            f"benchmarks: [{WHOLE}]\nscore_files: [a, b, c]\nmetric: acc",
            "give either benchmarks",
        ),
        ("score_files: [a, b, c]", "score_files need metric"),
        ("score_files: [a, b]\nmetric: acc", "a study has 3 runs at least"),
        ("score_files: [a, b, a]\nmetric: acc", "named twice"),
        (f"benchmarks: [{WHOLE}]\nscales: {{}}", "close: 'scale'"),
        (f"benchmarks: [{WHOLE}]\nscale: {{parameters: -1}}", "scale.parameters"),
    ],
)
def test_bad_files_are_refused_by_name(tmp_path, text, said):
    with pytest.raises(UserError, match=said):
        load(tmp_path, text)


def test_a_study_has_a_source_and_a_date(tmp_path):
    body = f"benchmarks: [{WHOLE}]"
    with pytest.raises(UserError, match="source: required"):
        load(tmp_path, body, "name: s\nmeasured_at: 2024-06-14\n")
    with pytest.raises(UserError, match="measured_at"):
        load(tmp_path, body, "name: s\nsource: x\nmeasured_at: some day\n")
    assert load(tmp_path, body).record("now").benchmarks[0].n_seeds == 3


def test_losses_have_their_unit(tmp_path):
    body = "benchmarks: [{benchmark: web, metric: bits_per_byte, n: 9, unit: bits per byte, scores: [1.2, 1.3, 1.25]}]"
    assert load(tmp_path, body).record("now").benchmarks[0].unit == "bits per byte"
