"""What people and graders said of an agreement set's outputs -> how far they agree.

People's label of an output is that of the majority; where they are evenly divided it has none. Runs no grader: verdicts
come from score sets, or from a file. An output that a grader gave no verdict on counts as disagreement: silence must
not win.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from eval_tasks.errors import UserError, did_you_mean
from eval_tasks.graders.labels import labelled_rows
from eval_tasks.records.agreement import Agreement, AgreementItem, AgreementSet, GraderVerdicts
from eval_tasks.records.grader import HUMAN
from eval_tasks.stats.agreement import ManyRaters, agreement, majority, many_raters
from eval_tasks.stats.influence import FloatArray
from eval_tasks.store import Store

ONE_RATER = "not measurable with one rater"
_NO_VERDICT = -1e9  # no label is equal to it


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanAgreement:
    """How far people agree with each other: the ceiling of any grader. `note` says why there is none.

    `pairs`: (rater, rater, their agreement on the outputs both labelled). `all_raters`: only where there are more than
    two.
    """

    pairs: Sequence[tuple[str, str, Agreement]]
    all_raters: ManyRaters | None = None
    note: str = ""


def human_agreement(items: Sequence[AgreementItem]) -> HumanAgreement:
    """Every pair of raters on the outputs that both labelled; all of them together where there are more than two."""
    raters = sorted({rater for item in items for rater in item.labels})
    table = _table(items, raters)
    pairs = []
    for (i, a), (j, b) in combinations(enumerate(raters), 2):
        both = ~np.isnan(table[:, [i, j]]).any(axis=1)
        if both.any():
            pairs.append((a, b, agreement(table[both, i], table[both, j])))
    note = ONE_RATER if len(raters) == 1 else "" if pairs else "no output has labels of two raters"
    return HumanAgreement(pairs=pairs, all_raters=many_raters(table) if len(raters) > 2 else None, note=note)


def people_say(items: Sequence[AgreementItem]) -> FloatArray:
    """People's label of each output, by majority, shape (items,); NaN where they are evenly divided."""
    return majority(_table(items, sorted({rater for item in items for rater in item.labels})))


def _table(items: Sequence[AgreementItem], raters: Sequence[str]) -> FloatArray:
    rows = [[item.labels.get(rater, np.nan) for rater in raters] for item in items]
    return np.array(rows, dtype=np.float64).reshape(len(items), len(raters))


def read_verdicts(
    agreement_set: AgreementSet, path: Path, *, items: Sequence[AgreementItem], grader: str, now: str
) -> GraderVerdicts:
    """A grader's verdicts on a set's outputs from a CSV or JSONL file with `item_id` and `label`.

    Raises UserError naming the line for an item that the set has not.
    """
    known = {item.item_id for item in items}
    verdicts = {}
    for label, _ in labelled_rows(path, rater=grader):
        if label.item_id not in known:
            raise UserError(
                f"{label.where}: agreement set {agreement_set.reference!r} has no item {label.item_id!r}; "
                f"{did_you_mean(label.item_id, known)}"
            )
        verdicts[label.item_id] = label.value
    return GraderVerdicts(
        set_digest=agreement_set.set_digest, grader=grader, created_at=now, verdicts=dict(sorted(verdicts.items()))
    )


def graders_of(store: Store, agreement_set: AgreementSet) -> list[str]:
    """The graders with verdicts on a set: those that were recorded, and those that scored every run it came from.

    People are not among them: they are what graders are held against.
    """
    recorded = [found.grader for found in store.catalog.verdicts(agreement_set.set_digest)]
    in_runs = [store.scores.graders(run_id, agreement_set.benchmark_id) for run_id in agreement_set.runs]
    scored = [grader for grader in (in_runs[0] if in_runs else []) if all(grader in found for found in in_runs)]
    return [grader for grader in dict.fromkeys([*recorded, *scored]) if not grader.startswith(HUMAN)]


def verdicts_of(store: Store, agreement_set: AgreementSet, items: Sequence[AgreementItem], grader: str) -> FloatArray:
    """What `grader` said of each output, shape (items,); NaN where it gave no verdict.

    Raises UserError when it has none on this set.
    """
    for found in store.catalog.verdicts(agreement_set.set_digest):
        if found.grader == grader:
            return np.array([found.verdicts.get(item.item_id, np.nan) for item in items], dtype=np.float64)
    known = graders_of(store, agreement_set)
    if grader not in known:
        raise UserError(
            f"grader {grader!r} has no verdicts on agreement set {agreement_set.reference!r}; "
            f"{did_you_mean(grader, known)}. Grade the runs it came from with it, or give its verdicts with: "
            "graders verdicts"
        )
    said: dict[tuple[str, str], float] = {}
    metric = store.catalog.benchmark_by_id(agreement_set.benchmark_id).primary_metric
    for run_id in agreement_set.runs:
        columns = ["item_id", "value", "status"]
        table = store.scores.read(run_id, agreement_set.benchmark_id, grader=grader, metric=metric, columns=columns)
        for row in table.to_pylist():
            if row["value"] is not None and row["status"] == "ok":
                said[run_id, row["item_id"]] = row["value"]
    return np.array([said.get((item.run_id, item.source_item), np.nan) for item in items], dtype=np.float64)


def with_people(people: FloatArray, verdicts: FloatArray) -> Agreement:
    """A grader's agreement with people's labels, on the outputs that have one; no verdict is disagreement."""
    decided = ~np.isnan(people)
    return agreement(people[decided], np.where(np.isnan(verdicts), _NO_VERDICT, verdicts)[decided])
