"""A starter is a file like any other: it loads, it teaches, its data is pinned."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from eval_tasks.digests import digest_bytes
from eval_tasks.errors import UserError
from eval_tasks.records.benchmark import Kind
from eval_tasks.registry import load_benchmark_file, starter


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_kind_loads_and_is_explained(tmp_path: Path, kind: Kind) -> None:
    files = starter("my-quiz", kind)
    path = tmp_path / "my-quiz.yaml"
    path.write_text(files.yaml, "utf-8")
    spec = load_benchmark_file(path)
    assert (spec.name, spec.version, spec.kind) == ("my-quiz", "1", kind)
    assert spec.source.blake3 == digest_bytes(files.data.encode())
    assert files.yaml.count("#") >= 10


@pytest.mark.parametrize("name", ["My Quiz", "", "a/b", "-x", "x" * 64])
def test_a_name_that_none_may_have(name: str) -> None:
    with pytest.raises(UserError, match="cannot name a benchmark"):
        starter(name, "choice")
