"""A look at a training run: what strikes, what it is held against, and that nothing is counted or told twice."""

from __future__ import annotations

import numpy as np
import pytest

from eval_tasks.aggregate import aggregate
from eval_tasks.errors import DataError, UserError
from eval_tasks.health import health
from tests.compare.stored import stored_run
from tests.health.conftest import NOW, benchmark, quarantine, rows

N = 200
RNG = np.random.default_rng(1)
BASE = RNG.uniform(0.6, 1.4, N)
CODE = np.arange(N) % 2 == 1


def losses(factor=1.0, code=1.0, seed=0):
    """Losses of one look: the documents' own, moved a little, times a factor (in code, another one too)."""
    moved = BASE + np.random.default_rng(seed).normal(0, 0.02, N)
    return moved * factor * np.where(CODE, code, 1.0)


def right(share, n=400, seed=0):
    return (np.random.default_rng(seed).random(n) < share).astype(float)


def struck(look):
    return [(f.detection, f.benchmark, f.subject) for f in look.alarms]


def test_the_first_look_has_nothing_to_be_held_against(store, take):
    text = benchmark(store, "text", N)
    look = take(100, (text, rows(text, losses())))
    assert (look.look, look.step, look.training_run) == (1, 100, "tiny")
    assert [(f.detection, f.alarm) for f in look.findings] == [("divergence", False)]
    assert look.findings[0].not_tested == "the first look: nothing earlier to be held against"
    assert store.catalog.health(look.run_id) == look
    assert store.catalog.alerts() == []


def test_a_loss_that_rises_is_divergence_and_one_that_falls_is_not(store, take):
    text = benchmark(store, "text", N)
    take(100, (text, rows(text, losses())))
    fell = take(200, (text, rows(text, losses(0.9, seed=1))))
    assert struck(fell) == []
    rose = take(300, (text, rows(text, losses(1.1, seed=2))))
    (alarm,) = rose.alarms
    assert (alarm.detection, alarm.against_step, alarm.since_step) == ("divergence", 200, 300)
    assert alarm.observed == pytest.approx(0.2, abs=0.02)
    assert alarm.threshold == pytest.approx(0.02 * 0.9, abs=0.001)
    assert alarm.detectable is not None and alarm.threshold < alarm.detectable < alarm.observed
    # Two lags share what the look may spend.
    assert alarm.alpha == pytest.approx(0.009 / 1_440 / 2)


def test_a_small_rise_is_no_alarm_however_sure_it_is(store, take):
    text = benchmark(store, "text", N)
    take(100, (text, rows(text, BASE)))
    assert struck(take(200, (text, rows(text, BASE * 1.015)))) == []


def test_a_domain_that_rises_while_the_others_do_not_is_forgotten(store, take):
    text = benchmark(store, "text", N, category_key="kind")
    take(100, (text, rows(text, losses())))
    look = take(200, (text, rows(text, losses(0.98, code=1.15, seed=1))))
    assert ("forgetting", "text", "code") in struck(look)
    assert ("forgetting", "text", "prose") not in struck(look)
    everything = take(300, (text, rows(text, losses(1.4, seed=2))))
    assert [s for s in struck(everything) if s[0] == "forgetting"] == [], "all rose: divergence, not forgetting"
    assert ("divergence", "text", "") in struck(everything)


def test_benchmarks_of_one_metric_are_domains_too(store, take):
    web, code = benchmark(store, "web", N), benchmark(store, "code", N)
    take(100, (web, rows(web, losses())), (code, rows(code, losses(seed=5))))
    look = take(200, (web, rows(web, losses(seed=1))), (code, rows(code, losses(1.2, seed=6))))
    assert ("forgetting", "code", "") in struck(look) and ("forgetting", "web", "") not in struck(look)


def test_a_domain_of_a_few_documents_is_not_tested(store, take):
    text = benchmark(store, "text", 30, category_key="kind")
    take(100, (text, rows(text, losses()[:30])))
    look = take(200, (text, rows(text, losses(1.5)[:30])))
    found = [f.not_tested for f in look.findings if f.detection == "forgetting"]
    assert found == ["15 documents, or as few in all other domains"] * 2


def test_accuracy_that_falls_to_chance_is_called_and_one_that_falls_above_it_is_not(store, take):
    choice = benchmark(store, "choice", 400, kind="choice", chance_level=0.25)
    answers = ["A", "B"] * 200
    take(100, (choice, rows(choice, right(0.6), answers)))
    assert struck(take(200, (choice, rows(choice, right(0.45, seed=1), answers)))) == []
    look = take(300, (choice, rows(choice, right(0.24, seed=2), answers)))
    assert struck(look) == [("chance_level", "choice", "")]


def test_a_benchmark_without_a_chance_level_says_so(store, take):
    choice = benchmark(store, "choice", 400, kind="choice")
    look = take(100, (choice, rows(choice, right(0.6), ["A", "B"] * 200)))
    assert look.findings[0].not_tested == "the benchmark declares no chance_level"


def test_one_answer_nearly_always_is_a_collapse_unless_it_was_so_before(store, take):
    choice = benchmark(store, "choice", 400, kind="choice")
    take(100, (choice, rows(choice, right(0.6), ["A", "B"] * 200)))
    look = take(200, (choice, rows(choice, right(0.6), ["A"] * 398 + ["B"] * 2)))
    assert struck(look) == [("collapse", "choice", "answer 'A'")]
    always = benchmark(store, "always", 400, kind="choice")
    take(300, (always, rows(always, right(0.9), ["A"] * 400)))
    same = take(400, (always, rows(always, right(0.9), ["A"] * 400)))
    assert [f.not_tested for f in same.findings if f.detection == "collapse"] == ["the answers were as uniform before"]


def test_an_alarm_that_lasts_is_told_once_and_again_when_it_comes_back(store, take):
    text = benchmark(store, "text", N)
    take(100, (text, rows(text, losses())))
    first = take(200, (text, rows(text, losses(1.2, seed=1))))
    second = take(300, (text, rows(text, losses(1.25, seed=2))))
    assert second.alarms[0].since_step == first.step
    (alert,) = store.catalog.alerts()
    assert (alert.kind, alert.run_id, alert.training_run) == ("health_divergence", first.run_id, "tiny")
    assert alert.title == "tiny step 200: divergence in text"
    assert alert.body.count("prompt ends") == 5
    store.catalog.acknowledge_alert(alert.alert_id, "kim", "restarted from step 100", NOW)
    take(400, (text, rows(text, losses(1.2, seed=3))))
    assert len(store.catalog.alerts()) == 1, "it goes on, and somebody knows"
    take(500, (text, rows(text, losses(0.9, seed=4))))
    take(600, (text, rows(text, losses(1.3, seed=5))))
    assert len(store.catalog.alerts()) == 2, "it went and came back"
    take(700, (text, rows(text, losses(1.3, seed=6))))
    assert len(store.catalog.alerts()) == 2


def test_a_look_is_taken_once_however_often_it_is_tried(store, take):
    text = benchmark(store, "text", N)
    take(100, (text, rows(text, losses())))
    look = take(300, (text, rows(text, losses(1.2, seed=1))))
    (alert,) = store.catalog.alerts()
    store.catalog.acknowledge_alert(alert.alert_id, "kim", "seen", NOW)
    # A backfill of a step between, and then a retry of the later look.
    take(200, (text, rows(text, losses(1.2, seed=2))))
    assert health(store, run_id=look.run_id, now=NOW) == look
    assert len([a for a in store.catalog.alerts() if a.run_id == look.run_id]) == 1


def test_a_checkpoint_that_was_evaluated_again_is_the_same_look(store, take):
    text = benchmark(store, "text", N)
    first = take(100, (text, rows(text, losses())))
    again = stored_run(store, 900, (text, rows(text, losses(1.5))), repeat=1)
    request = store.catalog.run(first.run_id).request
    store.catalog.update_run(again.run_id, step=100, status="closed", request=request)
    aggregate(store, again.run_id)
    look = take(200, (text, rows(text, losses(seed=1))))
    assert look.look == 2
    assert look.findings[0].observed == pytest.approx(0, abs=0.02), "held against the first run of that step"


def test_quarantined_numbers_are_neither_tested_nor_held_against(store, take):
    text = benchmark(store, "text", N)
    first = take(100, (text, rows(text, losses(0.5))))
    quarantine(store, first.run_id)
    look = take(200, (text, rows(text, losses())))
    assert look.look == 1 and struck(look) == []
    run = stored_run(store, 901, (text, rows(text, losses(2))))
    store.catalog.update_run(run.run_id, step=300, status="closed")
    aggregate(store, run.run_id)
    quarantine(store, run.run_id)
    now = health(store, run_id=run.run_id, now=NOW)
    assert now.findings[0].not_tested == "quarantined by guard: a test said so"


def test_noise_is_measured_once_there_are_eight_looks_and_shown(store, take):
    text = benchmark(store, "text", N)
    for k in range(8):
        look = take(100 * (k + 1), (text, rows(text, losses(1 - 0.01 * k, seed=k))))
        assert look.noise[0].sd is None
    look = take(900, (text, rows(text, losses(0.92, seed=9))))
    assert look.noise[0].sd is not None and look.noise[0].n_looks == 8 and look.noise[0].last_step == 800
    assert {f.against_step for f in look.findings} <= {800, 700, 500, 100}


def test_another_scorer_version_or_environment_is_said(store, take):
    text = benchmark(store, "text", N)
    take(100, (text, rows(text, losses())), grader="loss@0+old")
    look = take(200, (text, rows(text, losses(1.5))), env_fingerprint="f" * 64)
    assert struck(look) == []
    assert any("another scorer version" in note for note in look.notes)
    assert any("another environment" in note for note in look.notes)


def test_what_cannot_be_looked_at_is_refused_by_name(store, take):
    text = benchmark(store, "text", N)
    run = stored_run(store, 1, (text, rows(text, losses())))
    with pytest.raises(DataError, match="is planned, not closed"):
        health(store, run_id=run.run_id, now=NOW)
    store.catalog.update_run(run.run_id, status="closed")
    with pytest.raises(DataError, match="aggregate it first"):
        health(store, run_id=run.run_id, now=NOW)
    store.catalog.update_run(run.run_id, training_run="")
    with pytest.raises(UserError, match="belongs to no training run"):
        health(store, run_id=run.run_id, now=NOW)
