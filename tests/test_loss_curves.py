"""A held-out loss over steps: each step once, newest content first; accuracy is refused with its reason."""

from __future__ import annotations

import numpy as np
import pytest

from eval_tasks.aggregate import aggregate
from eval_tasks.errors import UserError
from eval_tasks.loss_curves import loss_curve
from tests.compare.stored import stored_run
from tests.health.conftest import benchmark, quarantine, rows


@pytest.fixture
def text(store):
    version = benchmark(store, "text", 30)
    for number, step, level in ((1, 1_000, 0.8), (2, 200, 0.9), (3, 300, 5.0)):
        run = stored_run(store, number, (version, rows(version, np.full(30, level) + np.arange(30) / 1e3)))
        store.catalog.update_run(run.run_id, step=step, status="closed")
        aggregate(store, run.run_id)
        if level > 1:
            quarantine(store, run.run_id)
    return version


def test_points_are_by_step_and_quarantined_ones_left_out(store, text):
    curve = loss_curve(store, "tiny", text)
    assert [(p.step, round(p.score, 4)) for p in curve.points] == [(200, 0.9145), (1_000, 0.8145)]
    assert all(p.ci95[0] < p.score < p.ci95[1] for p in curve.points)
    assert [p.step for p in loss_curve(store, "tiny", text, up_to_step=500).points] == [200]
    assert loss_curve(store, "other", text).points == ()


def test_a_step_that_was_overwritten_counts_by_its_newest_content(store, text):
    again = stored_run(store, 9, (text, rows(text, np.full(30, 0.7))))
    store.catalog.update_run(again.run_id, step=200, status="closed")
    aggregate(store, again.run_id)
    assert loss_curve(store, "tiny", text).points[0].run_id == again.run_id


def test_accuracy_and_unknown_metrics_are_refused(store, text):
    with pytest.raises(UserError, match="no metric 'acc'"):
        loss_curve(store, "tiny", text, metric="acc")
    choice = benchmark(store, "quiz", 10, kind="choice")
    with pytest.raises(UserError, match=r"quiz acc: accuracy is not drawn over steps: .* moves by sampling noise"):
        loss_curve(store, "tiny", choice)
