"""Closed runs of one benchmark version -> frozen item-response weights, and what each item is worth.

Right-or-wrong metrics only; one run for each checkpoint. Runs of one training run, or of one seed study, are not
independent: they are one group, and count as one observation wherever an error or a test is concerned.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eval_tasks.abilities import group_of, read_items
from eval_tasks.calibrate.items import DECIMALS, FLAGS, item_records, with_common_wrong
from eval_tasks.calibrate.runs import MIN_RUNS, participants, refuse_few
from eval_tasks.errors import UserError
from eval_tasks.records import BenchmarkVersion, CalibratedItem, Calibration, CalibrationRun, ItemReport, Run, to_json
from eval_tasks.records.item_response import ItemFlag
from eval_tasks.scoring import metric_of
from eval_tasks.stats.influence import FloatArray
from eval_tasks.stats.item_analysis import MIN_GROUPS, analyse_items
from eval_tasks.stats.item_response import BoolArray, calibrate_2pl, reliability

if TYPE_CHECKING:
    from eval_tasks.store import Store

MIN_ITEMS = 10
MIN_RELIABILITY = 0.5


def calibrate(
    store: Store,
    benchmark: BenchmarkVersion,
    *,
    now: str,
    run_ids: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    metric: str | None = None,
) -> Calibration:
    """Calibrate on `run_ids`, or on all runs of the archive that have a sound number, without those excluded.

    The same runs give the same weights and no new version. Raises UserError, with the number that is short, for too few
    runs, training runs or items, runs that hardly differ, and a metric that is not right or wrong.
    """
    metric = metric or benchmark.primary_metric
    if not metric_of(benchmark, metric).binary:
        raise UserError(
            f"{benchmark.name}: {metric} is not right or wrong; the two-parameter model needs right and wrong"
        )
    grader, runs = participants(store, benchmark, metric, run_ids, exclude)
    studies = {run_id: f"seed study {s.name}" for s in store.catalog.seed_studies() for run_id in s.runs}
    groups = [studies.get(run.run_id) or group_of(run) for run in runs]
    names = sorted(set(groups))
    refuse_few(benchmark, runs, names)
    item_ids, right, seen = _answers(store, benchmark, runs, grader, metric)
    calibrated = np.flatnonzero(_varies(right, seen) & (seen.sum(axis=0) >= MIN_RUNS))
    if len(calibrated) < MIN_ITEMS:
        raise UserError(
            f"{benchmark.name}: {len(calibrated)} of {len(item_ids)} items are right in some runs, wrong in others and "
            f"scored in {MIN_RUNS}; a calibration needs {MIN_ITEMS}"
        )
    sound = reliability(right[:, calibrated], seen[:, calibrated])
    if sound < MIN_RELIABILITY:
        raise UserError(
            f"{benchmark.name}: the {len(runs)} runs hardly differ in ability (reliability {sound:.2f}, "
            f"{MIN_RELIABILITY} is the least): what tells them apart cannot be seen; add weaker or stronger ones"
        )
    fit = calibrate_2pl(right[:, calibrated], seen[:, calibrated])
    codes = np.array([names.index(group) for group in groups], dtype=np.int64)
    chance = benchmark.chance_level
    analysis = analyse_items(right, seen, codes, fit, calibrated, chance)
    items = item_records(item_ids, seen, (fit, calibrated), analysis, chance, len(runs) / len(names))
    items = with_common_wrong(store, benchmark, runs, (grader, metric), items)
    return store.catalog.save_calibration(
        Calibration(
            benchmark=benchmark.name,
            benchmark_version=benchmark.version,
            benchmark_id=benchmark.benchmark_id,
            metric=metric,
            grader=grader,
            runs=tuple(
                CalibrationRun(run_id=run.run_id, checkpoint_id=run.request.checkpoint_id, group=group)
                for run, group in zip(runs, groups, strict=True)
            ),
            n_items=len(item_ids),
            n_calibrated=len(calibrated),
            n_flagged={flag: sum(flag in item.flags for item in items) for flag in FLAGS},
            reliability=round(sound, DECIMALS),
            rounds=fit.rounds,
            items_blob=store.blobs.put_json([to_json(item) for item in items]),
            notes=_notes(runs, names),
            created_at=now,
        )
    )


def item_report(
    store: Store, calibration: Calibration, *, flags: Sequence[ItemFlag] = FLAGS, limit: int | None = 50
) -> ItemReport:
    """The items with any of `flags`, the likeliest mislabelled first, with question and gold answer."""
    found = [item for item in read_items(store, calibration) if set(item.flags) & set(flags)]
    ranked = sorted(found, key=lambda i: (min(FLAGS.index(f) for f in i.flags if f in flags), _suspicion(i), i.item_id))
    shown = ranked[:limit]
    benchmark = store.catalog.benchmark_by_id(calibration.benchmark_id)
    ids = [item.item_id for item in shown]
    texts = {
        i.item_id: (_text(dict(i.fields)), _text(i.target)) for i in store.blobs.iter_items(benchmark.items_blob, ids)
    }
    return ItemReport(calibration=calibration, items=tuple(shown), n_listed=len(ranked), texts=texts)


def _answers(
    store: Store, benchmark: BenchmarkVersion, runs: Sequence[Run], grader: str, metric: str
) -> tuple[list[str], FloatArray, BoolArray]:
    """Item ids in order, right (0 or 1, 0 where unseen) and seen, both of shape (runs, items)."""
    tables = []
    for run in runs:
        rows = store.scores.read(
            run.run_id, benchmark.benchmark_id, grader=grader, metric=metric, columns=("item_id", "value", "status")
        )
        left_out = pc.is_in(rows["status"].cast(pa.string()), value_set=pa.array(["missing", "excluded"]))
        tables.append(rows.filter(pc.and_(pc.invert(left_out), pc.is_valid(rows["value"]))))
    ids = pc.unique(pa.chunked_array([chunk for t in tables for chunk in t["item_id"].chunks], pa.string()))
    ids = ids.take(pc.sort_indices(ids))
    right = np.zeros((len(runs), len(ids)))
    seen = np.zeros((len(runs), len(ids)), dtype=np.bool_)
    for k, rows in enumerate(tables):
        at = pc.index_in(rows["item_id"], value_set=ids).to_numpy()
        values = rows["value"].to_numpy()
        if not np.isin(values, (0.0, 1.0)).all():
            raise UserError(
                f"{benchmark.name}: run {runs[k].run_id} has values of {metric} that are neither 0 nor 1 (a mean over "
                "samples?); the two-parameter model needs right and wrong"
            )
        right[k, at], seen[k, at] = values, True
    return ids.to_pylist(), right, seen


def _varies(right: FloatArray, seen: BoolArray) -> BoolArray:
    n_right = right.sum(axis=0)
    return np.asarray((n_right > 0) & (n_right < seen.sum(axis=0)))


def _suspicion(item: CalibratedItem) -> float:
    """Smaller is likelier mislabelled: the adjusted p of what is odd, then the share that has it right."""
    found = [p for p in (item.q, item.chance_q) if p is not None]
    return min(found) if set(item.flags) & {"negative_discrimination", "below_chance"} else 1 + (item.share or 0.0)


def _notes(runs: Sequence[Run], groups: Sequence[str]) -> tuple[str, ...]:
    notes = []
    if len(groups) < len(runs):
        notes.append(
            f"the {len(runs)} checkpoints are of {len(groups)} training runs, whose checkpoints and seeds are not "
            "independent: errors and tests count each training run once"
        )
    if len(groups) < MIN_GROUPS:
        notes.append(
            f"{len(groups)} training runs: negative discrimination and shares below chance are not tested with fewer "
            f"than {MIN_GROUPS}"
        )
    if len({run.env_fingerprint for run in runs}) > 1:
        notes.append("the runs ran in different environments")
    return tuple(notes)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
