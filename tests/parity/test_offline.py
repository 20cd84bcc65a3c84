"""The shipped benchmarks load without a network, and only from the bytes they pin."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path
from typing import Any, NoReturn

import pyarrow.parquet as pq
import pytest

from eval_tasks.datasets import load_dataset
from eval_tasks.errors import DriftError
from eval_tasks.records import ScorerRef
from eval_tasks.registry import load_benchmark_file, load_suite_file, shipped_benchmarks, shipped_suites
from eval_tasks.scoring import check_items, scorer_version, validate_scorer

VERSIONS = {"gsm8k-mini": "2"}
MINI = {"mmlu-mini": 15, "gsm8k-mini": 12, "ifeval-mini": 14}
HERE = Path(__file__).parent


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every connection is refused and remembered."""
    made: list[str] = []

    def refuse(*arguments: Any, **options: Any) -> NoReturn:
        made.append(repr(arguments))
        raise OSError("no network in this test")

    for name in ("socket", "getaddrinfo", "create_connection"):
        monkeypatch.setattr(socket, name, refuse)
    return made


def test_eval_loader_works_with_no_network(attempts: list[str]) -> None:
    loaded = {}
    for name in MINI:
        path = shipped_benchmarks()[name]
        spec = load_benchmark_file(path)
        dataset = load_dataset(spec, path.parent)
        assert dataset.source_blake3 == spec.source.blake3
        if spec.few_shot and spec.few_shot.source:
            assert dataset.few_shot_blake3 == spec.few_shot.source.blake3
            assert len(dataset.few_shot) >= spec.few_shot.k
        scorer = ScorerRef(name=spec.scorer.name, version=scorer_version(spec.scorer.name))
        validate_scorer(scorer, spec.kind)
        check_items(scorer, dataset.items)
        loaded[name] = len(dataset.items)
    assert loaded == MINI
    assert attempts == []


@pytest.mark.parametrize("name", MINI)
def test_changed_bytes_fail_loudly(tmp_path: Path, name: str) -> None:
    shipped = shipped_benchmarks()[name]
    folder = shutil.copytree(shipped.parent, tmp_path / "mini")
    spec = load_benchmark_file(folder / shipped.name)
    data = folder / str(spec.source.uri)
    data.write_bytes(data.read_bytes()[:-8] + b"\x00\x00\x00\x00PAR1")
    with pytest.raises(DriftError, match=data.name):
        load_dataset(spec, folder)


@pytest.mark.parametrize("name", MINI)
def test_a_wrong_pin_fails_loudly(tmp_path: Path, name: str) -> None:
    shipped = shipped_benchmarks()[name]
    pinned = load_benchmark_file(shipped)
    folder = shutil.copytree(shipped.parent, tmp_path / "mini")
    path = folder / shipped.name
    path.write_text(path.read_text("utf-8").replace(str(pinned.source.blake3), "f" * 64), "utf-8")
    with pytest.raises(DriftError):
        load_dataset(load_benchmark_file(path), folder)


@pytest.mark.parametrize("name", ["mmlu-mini", "mmlu-mini-dev", "gsm8k-mini", "gsm8k-mini-train", "ifeval-mini"])
def test_shipped_rows_are_those_of_their_source_files(name: str) -> None:
    shipped = pq.read_table(shipped_benchmarks()["mmlu-mini"].parent / f"{name}.parquet").to_pylist()
    for row in shipped:
        if "kwargs" in row:
            row["kwargs"] = [
                {key: value for key, value in kwargs.items() if value is not None} for kwargs in row["kwargs"]
            ]
    lines = (HERE / f"mini/{name}.jsonl").read_text("utf-8").splitlines()
    assert shipped == [json.loads(line) for line in lines]


def test_the_suite_names_the_three() -> None:
    suite = load_suite_file(shipped_suites()["mini-selection"])
    assert [(entry.name, entry.version) for entry in suite.benchmarks] == [
        (name, VERSIONS.get(name, "1")) for name in MINI
    ]
