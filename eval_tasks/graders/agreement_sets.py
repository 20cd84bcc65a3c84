"""A file of labelled outputs, or runs' human labels -> an agreement set in the store.

A set is fixed: other outputs or labels are another version. Knows no grader but people.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eval_tasks.errors import UserError, did_you_mean
from eval_tasks.graders.labels import labelled_rows
from eval_tasks.prompts import render_text
from eval_tasks.records import BenchmarkVersion, Item, from_json, to_json
from eval_tasks.records.agreement import AgreementItem, AgreementSet
from eval_tasks.store import Store
from eval_tasks.store.text import storable_value

MOST_CATEGORIES = 20
SAMPLE = Path(__file__).parent / "sample.jsonl"
_FIELDS = ("output", "category", "prompt", "target")


def items_of_file(path: Path) -> list[AgreementItem]:
    """Labelled outputs of a CSV or JSONL file: a row per label, as `labels.read_labels` has them.

    Beside `item_id`, `rater` and `label` a row has `output`, and may have `category`, `prompt` and `target`; what an
    item's other rows repeat must be the same. Raises UserError naming the line.
    """
    fields: dict[str, dict[str, str]] = {}
    labels: dict[str, dict[str, float]] = {}
    for label, row in labelled_rows(path):
        mine = fields.setdefault(label.item_id, {})
        for name in _FIELDS:
            value = "" if row.get(name) is None else str(row[name])
            if value and mine.setdefault(name, value) != value:
                raise UserError(f"{label.where}: another {name} of item {label.item_id!r} than in a row before")
        if "output" not in row and "output" not in mine:
            raise UserError(f"{label.where}: no field 'output'; {did_you_mean('output', map(str, row))}")
        labels.setdefault(label.item_id, {})[label.rater] = label.value
    return [
        AgreementItem(item_id=item_id, **{"output": "", **mine}, labels=labels[item_id])
        for item_id, mine in fields.items()
    ]


def items_of_runs(store: Store, run_ids: Sequence[str], benchmark: str, grader: str) -> list[AgreementItem]:
    """The answers of runs to one benchmark version that people labelled as `grader` (``human/panel@1``).

    An item's category is the one its benchmark declares, else its stratum. Raises UserError when the runs have
    different versions of the benchmark, or no such labels.
    """
    items: list[AgreementItem] = []
    for run_id in run_ids:
        version = _one_version(store, run_ids, benchmark)
        scores = store.scores.read(run_id, version.benchmark_id, grader=grader, metric=version.primary_metric)
        labels = {row["item_id"]: _raters(row, grader) for row in scores.to_pylist()}
        shots = store.blobs.get_items(version.few_shot_blob) if version.few_shot_blob else []
        asked = {item.item_id: item for item in store.blobs.get_items(version.items_blob, labels)}
        for response in store.responses.rows(run_id, version.benchmark_id):
            if response.item_id not in labels:
                continue
            item = asked[response.item_id]
            items.append(
                AgreementItem(
                    item_id=f"{run_id}/{item.item_id}",
                    output=response.output,
                    labels=labels[item.item_id],
                    category=_category(item),
                    prompt=render_text(version, item, shots),
                    target=item.target if isinstance(item.target, str) else json.dumps(item.target),
                    run_id=run_id,
                    source_item=item.item_id,
                )
            )
    return items


def _one_version(store: Store, run_ids: Sequence[str], benchmark: str) -> BenchmarkVersion:
    found: dict[str, BenchmarkVersion] = {}
    for run_id in run_ids:
        versions = [store.catalog.benchmark_by_id(i) for i in store.catalog.run(run_id).request.benchmark_ids]
        named = [version for version in versions if version.name == benchmark]
        if not named:
            known = did_you_mean(benchmark, [version.name for version in versions])
            raise UserError(f"run {run_id[:12]} has no benchmark {benchmark!r}; {known}")
        found[named[0].benchmark_id] = named[0]
    if len(found) > 1:
        versions_found = ", ".join(sorted(version.version for version in found.values()))
        raise UserError(
            f"the runs have different versions of {benchmark!r} ({versions_found}); an agreement set has one"
        )
    return next(iter(found.values()))


def _raters(row: Mapping[str, Any], grader: str) -> dict[str, float]:
    """What each rater said, as `labels.import_labels` keeps it."""
    try:
        said = json.loads(row["detail"])
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise UserError(f"the scores of {grader!r} do not say what each rater said; name human labels (human/NAME@1)")
    return {str(rater): float(value) for rater, value in said.items()}


def _category(item: Item) -> str:
    return str(item.metadata.get("category") or item.stratum or "")


def make_set(
    store: Store,
    items: Sequence[AgreementItem],
    *,
    name: str,
    version: str = "1",
    benchmark: str = "",
    description: str = "",
    now: str,
) -> AgreementSet:
    """Keep `items` as an agreement set; the same again is a no-op.

    `benchmark`: the one it stands for, needed for items of runs. Raises UserError for labels that are measurements
    rather than categories, and when that version has other items.
    """
    if not items:
        raise UserError(f"agreement set {name!r} has no items")
    values = sorted({value for item in items for value in item.labels.values()})
    if len(values) > MOST_CATEGORIES:
        raise UserError(
            f"agreement set {name!r} has {len(values)} different labels: agreement and kappa are of categories, at "
            f"most {MOST_CATEGORIES}"
        )
    runs = tuple(sorted({item.run_id for item in items if item.run_id}))
    ordered = sorted(items, key=lambda item: item.item_id)
    made = AgreementSet(
        name=name,
        version=version,
        items_blob=store.blobs.put_json([storable_value(to_json(item)) for item in ordered]),
        n_items=len(ordered),
        raters=tuple(sorted({rater for item in ordered for rater in item.labels})),
        categories=dict(sorted(Counter(item.category for item in ordered).items())),
        created_at=now,
        benchmark=benchmark,
        benchmark_id=_one_version(store, runs, benchmark).benchmark_id if runs else "",
        runs=runs,
        description=description,
    )
    return store.catalog.save_agreement_set(made)


def items_of(store: Store, agreement_set: AgreementSet) -> list[AgreementItem]:
    """The set's outputs with their labels, by item id."""
    return [from_json(AgreementItem, value) for value in store.blobs.get_json(agreement_set.items_blob)]
