"""A file of human labels -> score rows of a run under a grader's name, beside those of the benchmark's scorer.

Several raters of one item make one score: the majority for right-or-wrong metrics, the mean for others; what each said
is kept in `detail`. Items that nobody labelled have no row: they were not asked about, so they are not missing.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval_tasks.digests import digest_value
from eval_tasks.errors import UserError, did_you_mean
from eval_tasks.records import BenchmarkVersion, Item, Score
from eval_tasks.records.grader import HUMAN
from eval_tasks.scoring import metric_of
from eval_tasks.store import Store
from eval_tasks.store.catalog.graders import Grader

_WORDS = {
    **dict.fromkeys(("1", "true", "yes", "right", "correct", "pass"), 1.0),
    **dict.fromkeys(("0", "false", "no", "wrong", "incorrect", "fail"), 0.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What one rater said of one item's output. `where`: file and line, for messages."""

    where: str
    item_id: str
    rater: str
    value: float


def read_labels(path: Path) -> list[Label]:
    """Labels of a CSV or JSONL file: `item_id`, `rater` and one of `label` and `score`; rows without one are left out.

    Raises UserError naming the line for a field that is absent, a word that is no label, or two labels by one rater for
    one item.
    """
    return [label for label, _ in labelled_rows(path)]


def labelled_rows(path: Path, rater: str = "") -> list[tuple[Label, Mapping[str, Any]]]:
    """The same with each label's whole row. With `rater` the labels are all by that one, and no row names any."""
    found: dict[tuple[str, str], tuple[Label, Mapping[str, Any]]] = {}
    for where, row in _rows(path):
        given = [row[name] for name in ("label", "score") if row.get(name) not in (None, "")]
        if len(given) > 1:
            raise UserError(f"{where}: both a label and a score; give one")
        if not given:
            if "label" not in row and "score" not in row:
                raise UserError(f"{where}: no field 'label' or 'score'; {did_you_mean('label', map(str, row))}")
            continue
        for name in ("item_id",) if rater else ("item_id", "rater"):
            if row.get(name) in (None, ""):
                raise UserError(f"{where}: no {name!r}; {did_you_mean(name, map(str, row))}")
        by = rater or str(row["rater"])
        label = Label(where=where, item_id=str(row["item_id"]), rater=by, value=_value(where, given[0]))
        if (earlier := found.get((label.item_id, label.rater))) is not None:
            raise UserError(
                f"{where}: rater {label.rater!r} labelled item {label.item_id!r} twice; first in {earlier[0].where}"
            )
        found[label.item_id, label.rater] = label, row
    if not found:
        raise UserError(f"{path} holds no labels")
    return list(found.values())


def import_labels(
    store: Store,
    labels: Sequence[Label],
    *,
    run_id: str,
    benchmark: BenchmarkVersion,
    grader: str,
    now: str,
) -> str:
    """Keep `labels` as the scores of `grader` (NAME or NAME@VERSION) on the benchmark's primary metric; gives its name.

    The same labels again are a no-op; other ones of a run that this version has labelled need another version. Raises
    UserError for an item that the run has no answer to, or a value that the metric cannot have.
    """
    name, _, version = grader.partition("@")
    human = Grader(
        name=f"{HUMAN}{name}",
        version=version or "1",
        kind="human",
        digest=digest_value(["human", name, version or "1"]),
        created_at=now,
    )
    answered = set(store.responses.read(run_id, benchmark.benchmark_id, columns=["item_id"])["item_id"].to_pylist())
    for label in labels:
        if label.item_id not in answered:
            raise UserError(
                f"{label.where}: run {run_id[:12]} has no answer to item {label.item_id!r} of {benchmark.name!r}; "
                f"{did_you_mean(label.item_id, answered)}"
            )
    by_item: dict[str, list[Label]] = {}
    for label in sorted(labels, key=lambda label: (label.item_id, label.rater)):
        by_item.setdefault(label.item_id, []).append(label)
    items = {item.item_id: item for item in store.blobs.get_items(benchmark.items_blob, by_item)}
    rows = [_score(benchmark, items[item_id], given) for item_id, given in by_item.items()]
    store.scores.write(run_id, benchmark.benchmark_id, human.grader, rows)
    store.catalog.save_grader(human)
    return human.grader


def _score(benchmark: BenchmarkVersion, item: Item, labels: Sequence[Label]) -> Score:
    metric = benchmark.primary_metric
    info = metric_of(benchmark, metric)
    values = [label.value for label in labels]
    if info.binary and (wrong := [label for label in labels if label.value not in (0.0, 1.0)]):
        raise UserError(f"{wrong[0].where}: {wrong[0].value:g}, and {metric!r} is right or wrong: 1 or 0")
    mean = math.fsum(values) / len(values)
    tied = info.binary and mean == 0.5
    return Score(
        benchmark_id=benchmark.benchmark_id,
        item_id=item.item_id,
        metric=metric,
        value=None if tied else float(mean > 0.5) if info.binary else mean,
        status="excluded" if tied else "ok",
        reason=f"{len(labels)} raters are divided evenly" if tied else "",
        detail=json.dumps({label.rater: label.value for label in labels}, ensure_ascii=False),
        stratum=item.stratum,
        cluster=item.cluster,
    )


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read as text: {error}") from error
    if path.suffix.lower() == ".csv":
        yield from _csv_rows(path, text)
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            where = f"{path}, line {number}"
            try:
                value = json.loads(line)
            except json.JSONDecodeError as error:
                raise UserError(f"{where}: not JSON ({error.msg}); labels are a .csv file, or JSON lines") from error
            if not isinstance(value, dict):
                raise UserError(f"{where}: expected an object with item_id, rater and label")
            yield where, value


def _csv_rows(path: Path, text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    # Raters paste outputs into a column beside their label; the module's own limit is 128 KiB a field.
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            yield f"{path}, line {reader.line_num}", row
    except csv.Error as error:
        raise UserError(f"{path}, after line {reader.line_num}: not CSV ({error})") from error


def _value(where: str, given: object) -> float:
    word = str(given).strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"{where}: label {given!r}; expected a number or one of {', '.join(sorted(_WORDS))}")
    return value
