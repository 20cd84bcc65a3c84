"""Frozen item-response weights of the store, and scored items -> abilities with their errors. Calibrates nothing.

A run is measured by the newest weights of its benchmark version, metric and grader that were not calibrated on its own
checkpoint: what was fitted to its answers would flatter it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eval_tasks.records import Ability, AbilityDifference, CalibratedItem, Calibration, Run, from_json
from eval_tasks.records.run import NO_TRAINING_RUN
from eval_tasks.stats.influence import FloatArray, IntArray
from eval_tasks.stats.item_response import ability, ability_difference
from eval_tasks.stats.item_scores import cluster_codes

if TYPE_CHECKING:
    from eval_tasks.store import Store


_TOO_FEW = "fewer than two of its items were scored"


def group_of(run: Run) -> str:
    """What a run has in common with runs that are not independent of it: its training run, else its checkpoint."""
    if run.training_run and run.training_run != NO_TRAINING_RUN:
        return run.training_run
    return run.request.checkpoint_id or run.run_id


class Weights:
    """Calibrations, newest first; their items are read when they are first asked for."""

    def __init__(self, store: Store, calibrations: Sequence[Calibration]) -> None:
        self._store = store
        self._known = calibrations
        self._items: dict[str, tuple[pa.Array, FloatArray, FloatArray]] = {}

    @classmethod
    def standing(cls, store: Store, benchmark_ids: Collection[str]) -> Weights:
        """All weights of some benchmark versions."""
        return cls(store, store.catalog.calibrations(benchmark_ids) if benchmark_ids else [])

    def know(self, benchmark_id: str, metric: str, grader: str) -> bool:
        """Whether anybody calibrated these scores."""
        return any((k.benchmark_id, k.metric, k.grader) == (benchmark_id, metric, grader) for k in self._known)

    def fitting(
        self, benchmark_id: str, metric: str, grader: str, runs: Sequence[Run]
    ) -> tuple[Calibration | None, str]:
        """The newest calibration that has none of `runs`, and what must be said of it or why there is none."""
        known = [
            k for k in self._known if (k.benchmark_id, k.metric, k.grader) == (benchmark_id, metric, grader)
        ]  # newest first
        for calibration in known:
            if not any(_is_of(run, calibration) for run in runs):
                shared = sorted({group_of(run) for run in runs} & set(calibration.groups))
                said = f"calibrated on other checkpoints of {', '.join(shared)} among others" if shared else ""
                return calibration, said
        if known:
            return (
                None,
                "every calibration was made on this checkpoint too: make one without it (irt calibrate --exclude)",
            )
        return None, ""

    def of(self, calibration: Calibration, item_ids: pa.Array) -> tuple[FloatArray, FloatArray]:
        """Discrimination and intercept of each item, shape of `item_ids`; a discrimination of 0 for one without."""
        if calibration.items_blob not in self._items:
            items = [i for i in read_items(self._store, calibration) if i.discrimination is not None]
            self._items[calibration.items_blob] = (
                pa.array([i.item_id for i in items], pa.string()),
                np.array([i.discrimination for i in items], dtype=np.float64),
                np.array([i.intercept for i in items], dtype=np.float64),
            )
        known, discrimination, intercept = self._items[calibration.items_blob]
        found = pc.index_in(item_ids, value_set=known)
        there = np.asarray(pc.is_valid(found).to_numpy(zero_copy_only=False), dtype=np.bool_)
        at = pc.fill_null(found, 0).to_numpy(zero_copy_only=False)
        if not len(known):
            return np.zeros(len(item_ids)), np.zeros(len(item_ids))
        return np.where(there, discrimination[at], 0.0), np.where(there, intercept[at], 0.0)


def read_items(store: Store, calibration: Calibration) -> list[CalibratedItem]:
    """The items of a calibration, by id."""
    return [from_json(CalibratedItem, value) for value in store.blobs.get_json(calibration.items_blob)]


def ability_of(
    weights: Weights,
    run: Run,
    key: tuple[str, str, str],
    item_ids: pa.Array,
    right: FloatArray,
    clusters: IntArray | None = None,
) -> Ability | None:
    """A run's ability on scored items: 0 or 1 each. key: benchmark_id, metric, grader. None where nobody calibrated."""
    calibration, note = weights.fitting(*key, [run])
    if calibration is None:
        return Ability(calibration="", calibration_id="", note=note) if note else None
    found = ability(right, *weights.of(calibration, item_ids), clusters)
    named = Ability(calibration=calibration.reference, calibration_id=calibration.calibration_id, note=note)
    if found is None:
        return replace(named, note=_TOO_FEW)
    return replace(named, theta=found.theta, se=found.se, ci95=found.ci95, n=found.n, gain=found.gain)


def ability_apart(
    weights: Weights,
    runs: tuple[Run, Run],
    benchmark: str,
    key: tuple[str, str, str],
    item_ids: pa.Array,
    right: tuple[FloatArray, FloatArray],
    clusters: pa.Array | None = None,
) -> AbilityDifference | None:
    """Two runs on the items that both have scored, A - B. key: benchmark_id, metric, grader."""
    calibration, note = weights.fitting(*key, runs)
    about = AbilityDifference(benchmark=benchmark, metric=key[1], calibration="", calibration_id="", note=note)
    if calibration is None:
        return about if note else None
    about = replace(about, calibration=calibration.reference, calibration_id=calibration.calibration_id)
    known = weights.of(calibration, item_ids)
    codes = None if clusters is None else cluster_codes(clusters)
    a, b = (ability(side, *known, codes) for side in right)
    if a is None or b is None:
        return replace(about, note=_TOO_FEW)
    delta, se, ci95 = ability_difference(a, b, codes)
    return replace(about, theta_a=a.theta, theta_b=b.theta, delta=delta, se=se, ci95=ci95, n=a.n)


def _is_of(run: Run, calibration: Calibration) -> bool:
    """Whether a calibration was made on the answers of that run's checkpoint."""
    checkpoint_id = run.request.checkpoint_id
    return any(
        known.run_id == run.run_id or (checkpoint_id and known.checkpoint_id == checkpoint_id)
        for known in calibration.runs
    )
