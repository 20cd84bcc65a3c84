"""Weights from the archive: what was planted is found, the same runs give the same weights, too few are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from eval_tasks.abilities import read_items
from eval_tasks.calibrate import calibrate, item_report
from eval_tasks.errors import UserError
from eval_tasks.records import Scale, SeedStudy
from tests.calibrate.conftest import ALL_RIGHT, ALL_WRONG, MISLABELLED, N_ITEMS, answers, evaluated
from tests.health.conftest import benchmark, quarantine
from tests.store.samples import NOW


def made(archive, runs=None, **changes):
    return calibrate(archive.store, archive.quiz, now=NOW, run_ids=runs, **changes)


def by_id(archive, calibration):
    return {item.item_id: item for item in read_items(archive.store, calibration)}


def test_planted_faults_are_found(archive):
    found = made(archive)
    items = by_id(archive, found)
    assert (found.n_items, found.n_calibrated, len(found.runs)) == (N_ITEMS, N_ITEMS - 2, 60)
    assert {i for i, item in items.items() if "negative_discrimination" in item.flags} == set(MISLABELLED)
    one = items["i0000"]
    assert one.discrimination < 0 and one.difficulty is None
    assert one.link < one.link_ci95[1] < 0 and one.q <= 0.05
    assert (one.n_runs, one.n_groups) == (60, 60)
    assert one.common_wrong == "B" and one.n_common_wrong == round(60 * (1 - one.share))
    assert items[ALL_RIGHT].flags == ("too_easy",) and items[ALL_RIGHT].discrimination is None
    assert items[ALL_WRONG].flags == ("below_chance", "too_hard") and items[ALL_WRONG].n_common_wrong == 60
    assert found.n_flagged["negative_discrimination"] == 4
    sound = next(i for i in items.values() if not i.flags and i.difficulty is not None)
    assert sound.difficulty == pytest.approx(-sound.intercept / sound.discrimination, abs=1e-4)
    assert sound.common_wrong is None
    few = [i for i in items.values() if i.link_ci95 is not None and i.link_ci95[0] > 0 and i.share_ci95[1] < 0.325]
    assert few and all("too_hard" not in i.flags for i in few), "few are right, and these are the abler ones"
    assert found.notes == () and found.reliability > 0.9


def test_the_same_runs_are_the_same_weights_in_any_order_and_other_runs_the_next_version(archive):
    first = made(archive, archive.runs)
    again = calibrate(archive.store, archive.quiz, now="2027-01-01T00:00:00+00:00", run_ids=archive.runs[::-1])
    assert again == first and first.version == 1 and first.reference == "quiz@1/1"
    fewer = made(archive, exclude=[archive.runs[0]])
    assert fewer.version == 2 and fewer.calibration_id != first.calibration_id
    assert archive.runs[0] not in {run.run_id for run in fewer.runs}
    assert archive.store.catalog.calibration(archive.quiz.benchmark_id) == fewer
    assert archive.store.catalog.calibration(archive.quiz.benchmark_id, 1) == first


def test_who_takes_no_part(archive):
    catalog, runs = archive.store.catalog, archive.runs
    quarantine(archive.store, runs[3])
    catalog.update_run(runs[4], origin="mock")
    catalog.update_run(runs[5], status="incomplete")
    archive.evaluated(90, answers(90, 0.0), grader="choice@2")
    assert {run.run_id for run in made(archive).runs} == set(runs) - set(runs[3:6])
    for run, why in ((runs[3], "quarantined"), (runs[4], "mock engine"), (runs[5], "incomplete, not closed")):
        with pytest.raises(UserError, match=why):
            made(archive, [*runs[:3], run])


def test_a_checkpoint_that_was_evaluated_twice_counts_once(archive):
    twice = archive.evaluated(91, answers(91, 0.0))
    request = archive.store.catalog.run(twice).request
    first = archive.store.catalog.run(archive.runs[0]).request.checkpoint_id
    archive.store.catalog.update_run(twice, request=replace(request, checkpoint_id=first))
    assert len(made(archive).runs) == 60


def test_checkpoints_of_one_training_run_are_said_to_be_dependent_and_widen_the_errors(archive):
    alone = by_id(archive, made(archive))
    for k, run_id in enumerate(archive.runs):
        archive.store.catalog.update_run(run_id, training_run=f"family-{k % 6}")
    found = made(archive)
    together = by_id(archive, found)
    assert found.groups == tuple(f"family-{k}" for k in range(6))
    assert any("60 checkpoints are of 6 training runs" in note for note in found.notes)
    assert any("not tested with fewer than 10" in note for note in found.notes)
    a, b = alone["i0000"], together["i0000"]
    assert b.discrimination == a.discrimination
    assert b.discrimination_se == pytest.approx(a.discrimination_se * np.sqrt(10), rel=1e-4)
    assert found.n_flagged["negative_discrimination"] == 0 and b.link is not None and b.q is None


def test_runs_of_a_seed_study_are_one_group(archive):
    study = SeedStudy(
        name="seeds",
        origin="runs",
        source="here",
        scale=Scale(),
        benchmarks=(),
        measured_at=NOW,
        recorded_at=NOW,
        runs=tuple(archive.runs[:3]),
    )
    archive.store.catalog.save_seed_study(study)
    found = made(archive)
    assert len(found.groups) == 58 and "seed study seeds" in found.groups


def test_too_few_runs_or_training_runs_are_refused_with_what_is_short(archive):
    with pytest.raises(UserError, match=r"quiz@1: 19 checkpoints have sound scores .* needs 20"):
        made(archive, archive.runs[:19])
    with pytest.raises(UserError, match=r"quiz@1: 0 checkpoints"):
        made(archive, exclude=archive.runs)
    for run_id in archive.runs:
        archive.store.catalog.update_run(run_id, training_run="one")
    with pytest.raises(UserError, match=r"60 checkpoints are of 1 training run \(one\).* needs 5"):
        made(archive)


def test_a_loss_is_refused(store):
    with pytest.raises(UserError, match="bits_per_byte is not right or wrong"):
        calibrate(store, benchmark(store, "text", 30), now=NOW)


def test_runs_that_hardly_differ_are_refused(store):
    quiz = benchmark(store, "quiz", N_ITEMS, kind="choice")
    chances = np.random.default_rng(0).uniform(0.2, 0.8, N_ITEMS)
    for k in range(1, 25):
        evaluated(store, quiz, k, (np.random.default_rng(k).random(N_ITEMS) < chances).astype(float))
    with pytest.raises(UserError, match=r"hardly differ in ability \(reliability 0\."):
        calibrate(store, quiz, now=NOW)


def test_too_few_items_that_vary_are_refused(store):
    quiz = benchmark(store, "quiz", 12, kind="choice")
    for k in range(1, 25):
        evaluated(store, quiz, k, [1.0] * 6 + [0.0] * 4 + [float(k % 2), float(k % 3 == 0)])
    with pytest.raises(UserError, match="2 of 12 items are right in some runs"):
        calibrate(store, quiz, now=NOW)


def test_values_between_right_and_wrong_are_refused(archive):
    half = answers(92, 0.0)
    half[7] = 0.5
    archive.evaluated(92, half)
    with pytest.raises(UserError, match="neither 0 nor 1"):
        made(archive)


def test_the_items_to_look_at_the_likeliest_mislabelled_first_with_their_texts(archive):
    found = made(archive)
    report = item_report(archive.store, found)
    assert {item.item_id for item in report.items[:4]} == set(MISLABELLED)
    assert [i.q for i in report.items[:4]] == sorted(i.q for i in report.items[:4])
    assert report.n_listed == len(report.items)
    assert report.texts["i0000"][0].startswith("{") and report.texts["i0000"][1] == "0"
    assert item_report(archive.store, found, limit=2).n_listed == report.n_listed
    only = item_report(archive.store, found, flags=["too_easy"])
    assert ALL_RIGHT in {item.item_id for item in only.items}
    assert all("too_easy" in item.flags for item in only.items)
