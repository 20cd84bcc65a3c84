"""Two JSONL files of scores, or several an arm -> a comparison: for scores that never were in a store.

A line is ``{"item_id": ..., "score": ...}`` with optional `benchmark`, `cluster` and `category`. Right-or-wrong scores
are 0 and 1; true and false are the same. A null score is a missing one.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eval_tasks.compare.noise import Noise
from eval_tasks.compare.pairing import BenchmarkArms, shares_items
from eval_tasks.compare.scores import NOT_KNOWN, Sides, compare_scores
from eval_tasks.compare.seed_arms import check_files, mean_notes, order_of, seeds_of_arms
from eval_tasks.compare.several_runs import mean_rows
from eval_tasks.digests import digest_bytes, short_id
from eval_tasks.errors import NotComparableError, UserError, did_you_mean
from eval_tasks.records import Comparison, DecisionRule
from eval_tasks.stats.item_scores import MetricTraits

_FIELDS = ("item_id", "score", "benchmark", "cluster", "category")


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileMetric:
    """What plain files say of their metric: binary when every score is 0 or 1; a fraction when all are in [0, 1]."""

    higher_is_better: bool
    unit: str
    binary: bool
    summary: str = "mean"


def compare_files(
    a: Path | Sequence[Path],
    b: Path | Sequence[Path],
    rule: DecisionRule | None = None,
    alpha: float = 0.05,
    *,
    seeds: tuple[Sequence[str], Sequence[str]] = ((), ()),
) -> Comparison:
    """Compare candidate `a` with baseline `b`. A file cannot show when its run began, so a rule never binds here.

    Several files an arm (three or more) are runs of one recipe, `seeds` their training seeds where they are known.

    Raises UserError naming file and line for what cannot be read, and for files that are no arms; NotComparableError
    when no item is in both arms, or an arm's files hold other items.
    """
    files = [(x,) if isinstance(x, Path) else tuple(x) for x in (a, b)]
    tables = {path: read_scores(path) for path in dict.fromkeys((*files[0], *files[1]))}
    digests = [tuple(short_id(digest_bytes(path.read_bytes())) for path in arm) for arm in files]
    several = max(map(len, files)) > 1
    if several or any(seeds):
        check_files(digests, seeds)
    names_a, names_b = (_names(files[k], [tables[path] for path in files[k]]) for k in (0, 1))
    shared = [name for name in names_a if name in names_b]
    if not shared:
        raise NotComparableError(
            f"{files[0][0]} and {files[1][0]} have no benchmark in common: {names_a} against {names_b}"
        )
    higher = rule is None or rule.direction == "higher"
    rows = {name: tuple([_of(tables[path], name) for path in arm] for arm in files) for name in shared}
    arms = [_arms(name, rows[name][0], rows[name][1], rule, higher) for name in shared]
    if not any(_overlaps(arm) for arm in arms):
        raise NotComparableError(
            f"{files[0][0]} and {files[1][0]} have no item_id in common; pairing is by item_id, never by position"
        )
    arms = [arm if _overlaps(arm) else _apart(arm) for arm in arms]
    own = None
    if several:
        of = {arm.benchmark: arm for arm in arms}
        own = seeds_of_arms(order_of(*(tuple(s) for s in seeds)), {n: (r[0], r[1]) for n, r in rows.items()}, of)
    only = sorted(set(names_a) ^ set(names_b))
    sides = Sides(
        run_a=digests[0][0],
        run_b=digests[1][0],
        label_a=_label(files[0]),
        label_b=_label(files[1]),
        exploratory_reason="plain files cannot show that the rule came before the scores" if rule else "",
        sources_of_variance={
            "sampling": "measured, from the item pairs",
            "engine": "unknown: plain files name no engine and no environment",
            "training seed": "not in this comparison: it speaks of two sets of scores, not of recipes"
            if own is None
            else f"in the answer for the recipes alone; measured: {own.origin}",
        },
        notes=(
            *((f"in one file only, and left out: {', '.join(only)}",) if only else ()),
            *mean_notes(*map(len, files)),
        ),
        noise=NOT_KNOWN if own is None else Noise(lineage="not known", seeds=own),
        further_a=digests[0][1:],
        further_b=digests[1][1:],
        seeds_a=tuple(seeds[0]),
        seeds_b=tuple(seeds[1]),
    )
    return compare_scores(arms, sides, rule=rule, alpha=alpha)


def _names(files: Sequence[Path], tables: Sequence[pa.Table]) -> list[str]:
    """The benchmarks of an arm. Raises NotComparableError for files of one arm that do not have the same."""
    names = [set(pc.unique(table["benchmark"]).to_pylist()) for table in tables]
    for path, found in zip(files, names, strict=True):
        if found != names[0]:
            raise NotComparableError(
                f"{files[0]} and {path} are of one arm and have other benchmarks: {sorted(names[0])} against "
                f"{sorted(found)}"
            )
    return sorted(names[0])


def _of(table: pa.Table, benchmark: str) -> pa.Table:
    return table.filter(pc.equal(table["benchmark"], benchmark))


def _label(files: Sequence[Path]) -> str:
    return files[0].stem + (f" and {len(files) - 1} other seeds" if len(files) > 1 else "")


def read_scores(path: Path) -> pa.Table:
    """The file as a table of benchmark, item_id, value, weight, status, cluster, category."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}") from error
    rows = [_row(path, n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if not rows:
        raise UserError(f"{path} holds no scores; expected a JSON object a line with item_id and score")
    counts = Counter((row["benchmark"], row["item_id"]) for row in rows)
    (benchmark, item_id), most = counts.most_common(1)[0]
    if most > 1:
        where = f" of benchmark {benchmark!r}" if benchmark else ""
        raise UserError(f"{path}: item_id {item_id!r}{where} is there {most} times; each item has one score")
    return pa.table(
        {
            "benchmark": pa.array([r["benchmark"] for r in rows], pa.string()),
            "item_id": pa.array([r["item_id"] for r in rows], pa.string()),
            "value": pa.array([r["score"] for r in rows], pa.float64()),
            "weight": pa.array([1.0] * len(rows), pa.float64()),
            "status": pa.array(["missing" if r["score"] is None else "ok" for r in rows], pa.string()),
            "cluster": pa.array([r["cluster"] for r in rows], pa.string()),
            "category": pa.array([r["category"] for r in rows], pa.string()),
        }
    )


def _row(path: Path, number: int, line: str) -> dict[str, Any]:
    where = f"{path}, line {number}"
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise UserError(f"{where}: not JSON ({error.msg})") from error
    if not isinstance(row, dict):
        raise UserError(f"{where}: expected an object with item_id and score, got {type(row).__name__}")
    for name in ("item_id", "score"):
        if name not in row:
            raise UserError(f"{where}: no field {name!r}; {did_you_mean(name, row)}")
    if unknown := sorted(set(row) - set(_FIELDS)):
        raise UserError(f"{where}: unknown field {unknown[0]!r}; {did_you_mean(unknown[0], _FIELDS)}")
    score = row["score"]
    if score is not None and (not isinstance(score, int | float) or not math.isfinite(score)):
        raise UserError(
            f"{where}: score {score!r} of item {row['item_id']!r}; expected a finite number, or null if lost"
        )
    for name in ("item_id", "benchmark", "cluster", "category"):
        if isinstance(row.get(name), dict | list | float | bool):
            raise UserError(f"{where}: {name} {row[name]!r}; expected text")
    if row["item_id"] is None:
        raise UserError(f"{where}: item_id is null; expected text")
    cluster, category = row.get("cluster"), row.get("category")
    return {
        "item_id": str(row["item_id"]),
        "score": None if score is None else float(score),
        "benchmark": str(row.get("benchmark") or "scores"),
        "cluster": None if cluster is None else str(cluster),
        "category": None if category is None else str(category),
    }


def _arms(
    name: str, a: Sequence[pa.Table], b: Sequence[pa.Table], rule: DecisionRule | None, higher: bool
) -> BenchmarkArms:
    sides = [mean_rows(name, f"arm {arm}", tables) for arm, tables in (("A", a), ("B", b))]
    info = file_metric(sides, higher=higher)
    metric = rule.metric if rule is not None and name in rule.benchmarks and rule.metric != "primary" else "score"
    clustered = any(side["cluster"].null_count < side.num_rows for side in sides)
    return BenchmarkArms(
        benchmark=name,
        metric=metric,
        info=info,
        a=sides[0],
        b=sides[1],
        clustered=clustered,
        difference="the files hold other items",
        contamination_note="never checked",
    )


def file_metric(sides: Sequence[pa.Table], *, higher: bool = True) -> MetricTraits:
    """What the scores of one benchmark in some files are, seen from their values."""
    values = {value for side in sides for value in pc.unique(side["value"]).to_pylist() if value is not None}
    return _FileMetric(
        higher_is_better=higher,
        unit="fraction" if all(0 <= v <= 1 for v in values) else "score",
        binary=values <= {0.0, 1.0},
    )


def _overlaps(arms: BenchmarkArms) -> bool:
    return shares_items(arms.a, arms.b)


def _apart(arms: BenchmarkArms) -> BenchmarkArms:
    return BenchmarkArms(
        benchmark=arms.benchmark,
        metric=arms.metric,
        info=arms.info,
        a=arms.a,
        b=arms.b,
        compatibility="NONE",
        not_tested="no item_id in common",
    )
