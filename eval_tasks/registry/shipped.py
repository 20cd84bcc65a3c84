"""What ships with the package: YAML files under `eval_tasks/benchmarks/`, told apart by their content.

A suite has `benchmarks`, a decision rule has `components`, all others are benchmarks. Those in the folder `hub` have no
data beside them: it is fetched from the Hugging Face hub, so they are registered by name and only when asked for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import yaml

from eval_tasks.errors import DataError

SHIPPED = Path(__file__).parents[1] / "benchmarks"
HUB = SHIPPED / "hub"


def shipped_benchmarks(folder: Path = SHIPPED) -> dict[str, Path]:
    """Benchmark files by name, in name order."""
    return _shipped(folder, "benchmark")


def hub_benchmarks(folder: Path = HUB) -> dict[str, Path]:
    """Files of benchmarks whose data lies on the hub, by name, in name order."""
    return _shipped(folder, "benchmark")


def shipped_suites(folder: Path = SHIPPED) -> dict[str, Path]:
    """Suite files by name, in name order."""
    return _shipped(folder, "suite")


def shipped_rules(folder: Path = SHIPPED) -> dict[str, Path]:
    """Decision rule files by name, in name order."""
    return _shipped(folder, "rule")


def _shipped(folder: Path, wanted: Literal["benchmark", "suite", "rule"]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*.yaml")):
        if path.parent == HUB and folder != HUB:
            continue
        raw = yaml.safe_load(path.read_text("utf-8"))
        if not isinstance(raw, dict) or not isinstance(raw.get("name"), str):
            raise DataError(f"{path} ships with the package and is no benchmark, suite or rule: it has no name")
        kind = "suite" if "benchmarks" in raw else "rule" if "components" in raw else "benchmark"
        if kind != wanted:
            continue
        if raw["name"] in found:
            raise DataError(f"{path} and {found[raw['name']]} both define the {kind} {raw['name']!r}")
        found[raw["name"]] = path
    return dict(sorted(found.items()))
