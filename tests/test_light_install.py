"""The library without its extras: what `pip install .` alone gives compares, scores and aggregates."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).parents[1]

_BLOCK = """
import importlib.abc, json, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""

_SCORE = """
import eval_tasks.aggregate, eval_tasks.checkpoint, eval_tasks.compare, eval_tasks.datasets, eval_tasks.gate
import eval_tasks.grade, eval_tasks.guard, eval_tasks.join_contamination, eval_tasks.plan, eval_tasks.prompts
import eval_tasks.publish, eval_tasks.register, eval_tasks.report, eval_tasks.resolve
import eval_tasks.endpoint, eval_tasks.graders, eval_tasks.run
import eval_tasks.stats, eval_tasks.tokenization
from eval_tasks.records import Item, Response
from eval_tasks.registry import load_benchmark_file, shipped_benchmarks
from eval_tasks.scoring import scorer_digest, scorer_metrics, scorer_names
from eval_tasks.store import open_store
for name in scorer_names():
    assert scorer_metrics(name)
for path in shipped_benchmarks().values():
    load_benchmark_file(path)
"""

_COMPARE = """
from eval_tasks.cli import main
sys.argv = ["eval_tasks", "compare", "--scores", "--json", *{files!r}]
main()
"""


def _absent() -> frozenset[str]:
    """Top-level modules that are installed here and that a plain install does not bring."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    queue, brought = [Requirement(text) for text in project["dependencies"]], set[tuple[str, str]]()
    while queue:
        requirement = queue.pop()
        for extra in ("", *requirement.extras):
            key = (canonicalize_name(requirement.name), extra)
            if key not in brought:
                brought.add(key)
                needs = [Requirement(text) for text in requires(requirement.name) or ()]
                queue += [need for need in needs if need.marker is None or need.marker.evaluate({"extra": extra})]
    names = {name for name, _ in brought} | {"checkpoint-eval"}
    return frozenset(
        module
        for module, distributions in packages_distributions().items()
        if not any(canonicalize_name(distribution) in names for distribution in distributions)
    )


def _run(script: str) -> subprocess.CompletedProcess[str]:
    blocked = _absent()
    assert {"airflow", "kubernetes", "torch", "transformers", "safetensors", "great_expectations"} <= blocked
    return subprocess.run(
        [sys.executable, "-c", _BLOCK.format(blocked=blocked) + script],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_all_but_the_engine_imports() -> None:
    done = _run(_SCORE)
    assert done.returncode == 0, done.stderr


def test_two_files_of_scores_are_compared(tmp_path: Path) -> None:
    files = []
    for name, right in (("candidate", 30), ("baseline", 18)):
        rows = [{"item_id": f"q{n}", "score": int(n < right), "benchmark": "mmlu"} for n in range(40)]
        files.append(str(tmp_path / f"{name}.jsonl"))
        Path(files[-1]).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    done = _run(_COMPARE.format(files=files))
    assert done.returncode == 0, done.stderr
    comparison = json.loads(done.stdout)
    assert comparison["tests"][0]["benchmark"] == "mmlu"
