"""Calibrations in the catalog: numbered, frozen, found by benchmark version."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from eval_tasks.errors import UserError
from eval_tasks.records import Calibration, CalibrationRun
from tests.store.samples import NOW


def calibration(**changes: object) -> Calibration:
    fields: dict[str, object] = {
        "benchmark": "quiz",
        "benchmark_version": "1",
        "benchmark_id": "b" * 32,
        "metric": "acc",
        "grader": "choice@1",
        "runs": (CalibrationRun(run_id="1" * 32, checkpoint_id="c" * 64, group="tiny"),),
        "n_items": 3,
        "n_calibrated": 2,
        "n_flagged": {"too_easy": 1},
        "reliability": 0.9,
        "rounds": 12,
        "items_blob": "d" * 64,
        "created_at": NOW,
    }
    return Calibration(**{**fields, **changes})  # type: ignore[arg-type]


def test_the_same_content_is_the_same_version_whenever_it_was_made(store):
    first = store.catalog.save_calibration(calibration())
    assert store.catalog.save_calibration(calibration(created_at="2027-01-01T00:00:00+00:00")) == first
    second = store.catalog.save_calibration(calibration(items_blob="e" * 64))
    other = store.catalog.save_calibration(calibration(benchmark_id="f" * 32))
    assert (first.version, second.version, other.version) == (1, 2, 1)
    assert store.catalog.calibrations(["b" * 32]) == [second, first]
    assert store.catalog.calibration("b" * 32) == second
    assert store.catalog.calibration("b" * 32, 1) == first
    assert first.calibration_id == replace(first, version=7).calibration_id != second.calibration_id
    with pytest.raises(UserError, match=r"no calibration .*known: quiz@1/1, quiz@1/2"):
        store.catalog.calibration("b" * 32, 3)


def test_several_at_once_get_numbers_of_their_own(store):
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda k: store.catalog.save_calibration(calibration(rounds=k)), range(8)))
    assert sorted(c.version for c in made) == list(range(1, 9))
