"""The best of many runs of a real store: its luck, its set, its check on other items; who takes no part."""

from __future__ import annotations

import numpy as np
import pytest

from eval_tasks.aggregate import aggregate
from eval_tasks.errors import NotComparableError, UserError
from eval_tasks.records import Suite, SuiteEntry
from eval_tasks.select import runs_of, select
from eval_tasks.stats.selection import expected_maximum
from tests.compare.stored import stored_run
from tests.health.conftest import benchmark, quarantine, rows

N = 400


def answers(seed: int, share: float = 0.6):
    """Three quarters of the items are alike for all runs; on the others each run answers for itself."""
    rng = np.random.default_rng(seed)
    common = (np.random.default_rng(0).random(N) < 0.6).astype(float)
    return np.where(np.arange(N) % 4 == 0, (rng.random(N) < share).astype(float), common)


def made(store, number, *scored, **changes):
    run = stored_run(store, number, *scored, **changes)
    store.catalog.update_run(run.run_id, status="closed")
    aggregate(store, run.run_id)
    return run.run_id


@pytest.fixture
def quiz(store):
    return benchmark(store, "quiz", N, kind="choice")


@pytest.fixture
def runs(store, quiz):
    shares = (0.6, 0.6, 0.6, 0.6, 0.95, 0.6)
    return [made(store, k, (quiz, rows(quiz, answers(k, share)))) for k, share in enumerate(shares, start=1)]


def test_the_best_with_its_luck_and_the_set_it_is_in(store, quiz, runs):
    (found,) = select(store, runs).benchmarks
    best = found.candidates[0]
    assert (best.run_id, best.label, best.in_set) == (runs[4], "tiny step 500", True)
    assert [c.in_set for c in found.candidates[1:]] == [False] * 5
    assert found.n_items == N and len(found.candidates) == 6
    assert found.optimism == pytest.approx(expected_maximum(6) * found.noise_sd)
    assert sorted(c.score for c in found.candidates) == [c.score for c in found.candidates[::-1]]
    assert found.candidates[-1].score < found.candidates[-1].shrunk and best.shrunk < best.score
    assert found.confirmation is None
    assert store.catalog.selection(runs[-1]) == select(store, runs)


def test_what_is_selected_on_one_half_is_measured_on_the_other(store, quiz, runs):
    (found,) = select(store, runs, split=True).benchmarks
    c = found.confirmation
    assert c is not None
    assert (c.n_select, c.n_confirm) == (N // 2, N // 2)
    assert (c.selected, c.against) == ("tiny step 500", "tiny step 600")
    assert c.delta is not None and c.delta > 0 and c.p < 0.01
    assert c.ci95[0] < c.score < c.ci95[1]
    other = select(store, runs, split=True, against=runs[0]).benchmarks[0].confirmation
    assert other.against == "tiny step 100"
    turned = select(store, runs[::-1], split=True).benchmarks[0].confirmation
    assert turned == c, "the order of the runs does not matter"


def test_where_the_latest_is_selected_the_runner_up_stands_against_it(store, quiz):
    ids = [made(store, k, (quiz, rows(quiz, answers(k, share)))) for k, share in ((1, 0.4), (2, 0.6), (3, 0.95))]
    c = select(store, ids, split=True).benchmarks[0].confirmation
    assert (c.selected, c.against) == ("tiny step 300", "tiny step 200")


def test_a_lower_loss_is_the_better_one(store):
    text = benchmark(store, "text", 60)
    rng = np.random.default_rng(1)
    base = rng.uniform(0.6, 1.4, 60)
    levels = (0.0, -0.2, 0.1)
    ids = [
        made(store, k, (text, rows(text, base + level + rng.normal(0, 0.01, 60)))) for k, level in enumerate(levels, 1)
    ]
    (found,) = select(store, ids, split=True).benchmarks
    assert [c.step for c in found.candidates] == [200, 100, 300]
    assert found.confirmation is not None and found.confirmation.delta < 0


def test_quarantined_runs_and_items_that_one_run_lacks_take_no_part(store, quiz):
    whole = [made(store, k, (quiz, rows(quiz, answers(k)))) for k in (1, 2)]
    short = made(store, 3, (quiz, rows(quiz, answers(3))[:-10]))
    out = made(store, 4, (quiz, rows(quiz, answers(4, 0.99))))
    quarantine(store, out)
    (found,) = select(store, [*whole, short, out]).benchmarks
    assert found.n_items == N - 10 and len(found.candidates) == 3
    (alone,) = select(store, [whole[0], out]).benchmarks
    assert alone.not_selected == "fewer than two runs have a number that guard let stand"


def test_several_training_runs_and_environments_are_said(store, quiz):
    ids = [
        made(store, 1, (quiz, rows(quiz, answers(1)))),
        made(store, 2, (quiz, rows(quiz, answers(2))), training_run="other", env_fingerprint="f" * 64),
    ]
    selection = select(store, ids)
    assert any("several training runs" in note for note in selection.notes)
    assert any("different environments" in note for note in selection.notes)
    assert selection.benchmarks[0].noise is None


def test_noise_of_the_training_run_stands_beside(store, quiz):
    ids = [made(store, k, (quiz, rows(quiz, answers(k)))) for k in range(1, 11)]
    noise = select(store, ids).benchmarks[0].noise
    assert noise is not None and noise.n_looks == 10 and noise.sd is not None


def test_what_cannot_be_selected_is_refused_by_name(store, quiz, runs):
    with pytest.raises(UserError, match="1 run to select from"):
        select(store, runs[:1])
    with pytest.raises(UserError, match="named twice"):
        select(store, [runs[0], runs[0]])
    with pytest.raises(UserError, match="do not share benchmark 'quizz'; close: 'quiz'"):
        select(store, runs, benchmark="quizz")
    with pytest.raises(UserError, match="not among the runs"):
        select(store, runs[:3], split=True, against=runs[4])
    text = benchmark(store, "text", 20)
    other = made(store, 90, (text, rows(text, np.ones(20))))
    with pytest.raises(NotComparableError, match="share no benchmark version"):
        select(store, [runs[0], other])
    regraded = made(store, 91, (quiz, rows(quiz, answers(1))), grader="choice@2")
    with pytest.raises(NotComparableError, match="no one scorer version"):
        select(store, [runs[0], regraded])
    store.catalog.update_run(other, status="incomplete")
    with pytest.raises(UserError, match="is incomplete, not closed"):
        select(store, [runs[0], other])


def test_the_runs_of_a_training_run_are_one_for_each_step(store, quiz, runs):
    entry = SuiteEntry(benchmark="quiz", version="1", benchmark_id=quiz.benchmark_id)
    suite = store.catalog.save_suite(Suite(name="health", version="1", tier="health", entries=(entry,)))
    for run_id in runs:
        request = store.catalog.run(run_id).request
        changed = {"request": type(request)(**{**_fields(request), "suite_id": suite.suite_id})}
        store.catalog.update_run(run_id, **changed)
    assert runs_of(store, "tiny", "health") == runs
    assert runs_of(store, "tiny", "health@1", up_to_step=300) == runs[:3]


def _fields(record):
    return {name: getattr(record, name) for name in record.__slots__}
