"""Frozen weights put to use: in a run's measurements and beside comparisons, never on what they were fitted to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eval_tasks.abilities import read_items
from eval_tasks.aggregate import aggregate
from eval_tasks.calibrate import calibrate
from eval_tasks.compare import compare
from tests.calibrate.conftest import ability_at, answers
from tests.calibrate.conftest import archive as archive
from tests.calibrate.conftest import archive_home as archive_home
from tests.compare.stored import stored_run
from tests.health.conftest import benchmark, quarantine, rows
from tests.store.samples import NOW


def made(archive, *exclude):
    return calibrate(archive.store, archive.quiz, now=NOW, exclude=exclude)


def n_used(archive, calibration):
    return sum((item.discrimination or 0) > 0 for item in read_items(archive.store, calibration))


def test_an_ability_is_measured_when_a_later_run_is_aggregated(archive):
    found = made(archive, archive.runs[30])
    late = archive.evaluated(93, answers(93, 1.5))
    (measured,) = archive.store.catalog.measurements(late)
    ability = measured.ability
    assert ability.calibration == found.reference and ability.n == n_used(archive, found)
    assert ability.ci95[0] < ability.theta < ability.ci95[1] and abs(ability.theta - 1.5) < 4 * ability.se
    assert ability.gain > 1.0 and ability.note == ""
    (own,) = aggregate(archive.store, archive.runs[0])
    assert own.ability.theta is None and "made on this checkpoint too" in own.ability.note
    (left_out,) = aggregate(archive.store, archive.runs[30])
    assert abs(left_out.ability.theta - ability_at(31)) < 4 * left_out.ability.se


def test_measuring_an_ability_undoes_nothing_of_guard(archive):
    late = archive.evaluated(94, answers(94, 0.5))
    quarantine(archive.store, late)
    made(archive)
    (measured,) = aggregate(archive.store, late)
    assert measured.quarantined and measured.ability.theta is not None


def test_a_loss_has_no_ability(archive):
    made(archive)
    text = benchmark(archive.store, "text", 30)
    run = stored_run(archive.store, 95, (text, rows(text, np.linspace(0.5, 1.5, 30))))
    assert all(m.ability is None for m in aggregate(archive.store, run.run_id))


def test_the_difference_of_two_runs_stands_beside_the_tests_and_moves_none(archive):
    a, b = (archive.evaluated(k, answers(7, theta)) for k, theta in ((101, 1.0), (102, 0.2)))
    before = compare(archive.store, a, b)
    calibration = made(archive, a, b)
    after = compare(archive.store, a, b)
    (found,) = after.abilities
    assert before.abilities == ()
    assert replace(after, abilities=()) == before
    assert found.calibration == calibration.reference and found.n == n_used(archive, calibration)
    assert found.delta == found.theta_a - found.theta_b and found.ci95[0] < found.delta < found.ci95[1]
    assert abs(found.delta - 0.8) < 4 * found.se
    assert compare(archive.store, a, b) == after, "and it is kept as it is"


def test_a_run_that_was_calibrated_on_has_a_number_by_other_weights_only(archive):
    first, late = archive.runs[0], archive.evaluated(103, answers(103, 0.4))
    made(archive, late)
    (found,) = compare(archive.store, late, first).abilities
    assert found.delta is None and "made on this checkpoint too" in found.note
    clean = made(archive, late, first)
    made(archive)
    (found,) = compare(archive.store, late, first).abilities
    assert found.calibration == clean.reference and found.delta is not None


def test_weights_of_other_checkpoints_of_its_training_run_are_said(archive):
    late = archive.evaluated(104, answers(104, 0.4), training_run="model-3")
    other = archive.evaluated(105, answers(105, 0.4))
    made(archive, late, other)
    (found,) = compare(archive.store, late, other).abilities
    assert found.delta is not None and found.note == "calibrated on other checkpoints of model-3 among others"


def test_scores_of_another_scorer_version_have_no_weights(archive):
    made(archive)
    a, b = (archive.evaluated(k, answers(k, 0.1), grader="choice@2") for k in (106, 107))
    assert compare(archive.store, a, b).abilities == ()
