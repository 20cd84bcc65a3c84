"""Which stored runs and benchmarks a regrading takes, what is done of them, and what the rest costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from eval_tasks.errors import UserError
from eval_tasks.graders import OWN, Cost, Window, forecast, gradings, moment, runs_in
from eval_tasks.store import Store
from tests.answered import answered, checkpoint
from tests.graders.judged import answer_it, finish_it, plan_it, register, write_judge
from tests.planned import N_CHOICE, N_GENERATED, N_TEXT, NOW, planned, write_checkpoint

__all__ = ["answered", "checkpoint"]

Answered = Callable[..., str]


@pytest.fixture(scope="module")
def judge_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("judge") / "judge", seed=7)


def test_a_time_is_a_date_or_has_its_own_zone() -> None:
    assert moment("2026-01-31") == datetime(2026, 1, 31, tzinfo=UTC)
    assert moment("2026-01-31", end=True) == datetime(2026, 2, 1, tzinfo=UTC)
    assert moment("2026-01-31T12:00:00+02:00", end=True) == datetime(2026, 1, 31, 10, tzinfo=UTC)
    assert moment("2026-01-31T12:00") == datetime(2026, 1, 31, 12, tzinfo=UTC)
    with pytest.raises(UserError, match="not a time: 'yesterday'; write 2026-01-31"):
        moment("yesterday")


def test_a_window_holds_the_closed_evaluations_that_fit_every_field(
    store: Store, answered: Answered, checkpoint: Path
) -> None:
    run_id = answered()
    planned(store, checkpoint, repeat=1)  # it has no rows yet
    began = datetime.fromisoformat(NOW)

    def found(**fields: object) -> list[str]:
        return [run.run_id for run in runs_in(store, Window(**fields))]  # type: ignore[arg-type]

    for inside in (
        {},
        {"since": began, "until": began + timedelta(seconds=1)},
        {"training_run": "tiny", "tier": "selection", "suite": "colours-all@1", "benchmark": "colour-sums"},
        {"run_ids": (run_id[:10],)},
    ):
        assert found(**inside) == [run_id]
    for outside in (
        {"since": began + timedelta(seconds=1)},
        {"until": began},
        {"training_run": "other"},
        {"tier": "health"},
        {"suite": "colours-all@2"},
        {"suite": "other"},
        {"benchmark": "other"},
    ):
        assert found(**outside) == []
    with pytest.raises(UserError, match="there is no time in it"):
        found(since=began, until=began)
    with pytest.raises(UserError, match="no run 'zzzz'"):
        found(run_ids=("zzzz",))


def test_a_scorer_takes_its_own_benchmarks_and_another_one_by_name(store: Store, answered: Answered) -> None:
    run = store.catalog.run(answered())

    def taken(grader: str, benchmark: str = "") -> list[tuple[str, bool, bool]]:
        return [(g.benchmark.name, g.done, g.is_own) for g in gradings(store, run, grader, benchmark)]

    assert taken("gsm8k") == [("colour-sums", True, True)]
    assert taken(OWN) == [(name, True, True) for name in ("colours", "colour-text", "colour-sums")]
    assert taken("regex") == []
    assert taken("regex", "colour-sums") == [("colour-sums", False, False)]
    with pytest.raises(UserError, match="scores generation benchmarks, not kind 'choice'"):
        taken("regex", "colours")
    with pytest.raises(UserError, match="has no benchmark 'colour'; close: 'colours'"):
        taken("regex", "colour")
    with pytest.raises(UserError, match="no grader 'rexeg' of stored outputs; close: 'regex'"):
        taken("rexeg")


def test_a_judge_takes_what_it_fits_and_costs_its_questions(
    store: Store, answered: Answered, judge_checkpoint: Path, tmp_path: Path
) -> None:
    lost = {"status": "invalid", "reason": "non-finite logits"}
    run = store.catalog.run(answered(lambda name, n: lost if name == "colour-sums" and n == 5 else {}))
    register(store, write_judge(tmp_path, judge_checkpoint))
    [grading] = gradings(store, run, "helpful")
    assert (grading.benchmark.name, grading.done, grading.is_own) == ("colour-sums", False, False)
    with pytest.raises(UserError, match="'colours' of kind 'choice' has none"):
        gradings(store, run, "helpful", "colours")
    cost = forecast(store, grading)
    assert (cost.n_outputs, cost.n_questions, cost.seconds) == (N_GENERATED, N_GENERATED - 1, None)
    assert cost.about_tokens > cost.n_questions
    assert store.catalog.runs(judging=True) == []  # to ask what it costs plans nothing
    made = plan_it(store, run.run_id, "helpful")
    assert made is not None
    answer_it(store, made, lambda _: {"logprobs": (-1.0, -2.0)})
    assert forecast(store, grading) == Cost(n_outputs=N_GENERATED)
    finish_it(store, run.run_id, "helpful")
    [done] = gradings(store, run, "helpful")
    assert (done.done, forecast(store, done)) == (True, Cost())


def test_the_time_of_a_judging_is_that_of_its_earlier_ones(
    store: Store, answered: Answered, checkpoint: Path, judge_checkpoint: Path, tmp_path: Path
) -> None:
    run = store.catalog.run(answered())
    register(store, write_judge(tmp_path, judge_checkpoint))
    made = plan_it(store, run.run_id, "helpful")
    assert made is not None
    answer_it(store, made, lambda _: {"logprobs": (-1.0, -2.0)})
    finish_it(store, run.run_id, "helpful")
    store.catalog.record_shard(made.run_id, made.shards[0].shard, status="done", seconds=18.0)
    [done] = gradings(store, run, "helpful")
    other = replace(run, run_id="f" * 32)
    unjudged = replace(done, run=other, done=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eval_tasks.graders.window.answers_of", lambda *_: answers(store, run.run_id))
        assert forecast(store, unjudged).seconds == pytest.approx(18.0)


def answers(store: Store, run_id: str) -> object:
    from eval_tasks.graders.grading import answers_of

    run = store.catalog.run(run_id)
    return answers_of(store, run, store.catalog.benchmark("colour-sums"))


def test_scorers_cost_no_questions(store: Store, answered: Answered) -> None:
    run = store.catalog.run(answered())
    [grading] = gradings(store, run, "regex", "colour-sums")
    assert forecast(store, grading) == Cost(n_outputs=N_GENERATED)
    assert {g.benchmark.name: g.benchmark.n_items for g in gradings(store, run, OWN)} == {
        "colours": N_CHOICE,
        "colour-text": N_TEXT,
        "colour-sums": N_GENERATED,
    }
