"""Judging stored outputs with the engine: planned, sharded and resumed as any run, finished as a score set beside."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.aggregate import aggregate
from eval_tasks.compare import compare
from eval_tasks.errors import InfraError, UserError
from eval_tasks.grade import grade
from eval_tasks.graders import environment_for, plan_grading
from eval_tasks.guard import guard
from eval_tasks.publish import publish
from eval_tasks.records import Plan
from eval_tasks.settings import Config, EnvironmentSpec, Limits
from eval_tasks.store import Store
from tests.answered import answer_by_hand, answered, checkpoint
from tests.graders.judged import LOCAL, answer_it, finish_it, plan_it, register, run_it, write_judge
from tests.planned import N_GENERATED, NOW, write_checkpoint
from tests.planned import planned as planned_run

__all__ = ["answered", "checkpoint"]

Answered = Callable[..., str]


@pytest.fixture(scope="session")
def judge_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("judge") / "judge", seed=7)


def planned(store: Store, run_id: str, grader: str, **limits: Any) -> Plan:
    made = plan_it(store, run_id, grader, **limits)
    assert made is not None
    return made


def scores(store: Store, run_id: str, benchmark: str, grader: str) -> dict[str, dict[str, Any]]:
    benchmark_id = store.catalog.benchmark(benchmark).benchmark_id
    return {row["item_id"]: row for row in store.scores.read(run_id, benchmark_id, grader).to_pylist()}


def test_a_logprob_judge_scores_every_output_beside_the_scorer(
    store: Store, answered: Answered, judge_checkpoint: Path, tmp_path: Path
) -> None:
    run_id = answered()
    before = [aggregate(store, run_id), store.catalog.runs(), store.catalog.benchmarks()]
    grader = register(store, write_judge(tmp_path, judge_checkpoint)).grader
    made = planned(store, run_id, "helpful", shard_cost_tokens=2_000)
    assert len(made.shards) > 1
    assert {shard.group for shard in made.shards} == {"logprob"}
    with pytest.raises(InfraError, match="batches have no result"):
        finish_it(store, run_id, "helpful")
    run_it(store, made)
    assert plan_it(store, run_id, "helpful") is None
    assert finish_it(store, run_id, "helpful@1") == grader == finish_it(store, run_id, grader)
    assert grader.startswith("judge/helpful@1+")
    rows = scores(store, run_id, "colour-sums", grader)
    assert len(rows) == N_GENERATED
    assert {row["status"] for row in rows.values()} == {"ok"}
    assert {row["metric"] for row in rows.values()} == {"strict"}
    for row in rows.values():
        logprobs = json.loads(row["detail"])["logprobs"]
        assert row["extracted"] == max(logprobs, key=logprobs.get)
        assert row["value"] == {" Yes": 1.0, " No": 0.0}[row["extracted"]]
    assert [aggregate(store, run_id), store.catalog.runs(), store.catalog.benchmarks()] == before


def by_hand(n_verdict: Callable[[int], dict[str, Any]]) -> Callable[[str], dict[str, Any]]:
    return lambda item_id: n_verdict(int(item_id[1:4]))


def test_a_judge_that_gives_no_verdict_makes_an_item_missing_and_never_wrong(
    store: Store, answered: Answered, judge_checkpoint: Path, tmp_path: Path
) -> None:
    lost = {"status": "invalid", "reason": "non-finite logits"}
    run_id = answered(lambda name, n: lost if name == "colour-sums" and n == 5 else {})
    grader = register(store, write_judge(tmp_path, judge_checkpoint)).grader
    made = planned(store, run_id, grader)
    assert made.n_items == N_GENERATED - 1
    strange = {
        0: {"logprobs": (-1.0, -1.0)},
        1: {"logprobs": (float("nan"), -1.0)},
        2: {"logprobs": (-1.0, -2.0), "prompt_truncated": True},
        3: {"status": "invalid", "reason": "non-finite logits"},
    }
    answer_it(store, made, by_hand(lambda n: strange.get(n, {"logprobs": (-1.0, -2.0)})))
    finish_it(store, run_id, grader)
    rows = scores(store, run_id, "colour-sums", grader)
    found = {n: (row["value"], row["status"], row["reason"]) for n, row in enumerate(rows.values())}
    assert found == {
        **dict.fromkeys(range(N_GENERATED), (1.0, "ok", "")),
        0: (None, "missing", "judge: tie of ' Yes' and ' No'"),
        1: (None, "missing", "judge: non-finite logprob of an answer"),
        2: (None, "missing", "judge: the judge's prompt was cut to its context"),
        3: (None, "missing", "judge: non-finite logits"),
        5: (0.0, "invalid", "non-finite logits"),
    }
    assert json.loads(rows["g000"]["detail"]) == {"logprobs": {" Yes": -1.0, " No": -1.0}}
    assert json.loads(rows["g001"]["detail"]) == {"logprobs": {" Yes": "nan", " No": -1.0}}


def test_a_judge_is_asked_about_empty_and_damaged_outputs_too(
    store: Store, answered: Answered, judge_checkpoint: Path, tmp_path: Path
) -> None:
    odd = {0: "", 1: "\ud800 half of a pair", 2: "\x00", 3: "9" * 5000}
    run_id = answered(lambda name, n: {"output": odd[n]} if name == "colour-sums" and n in odd else {})
    grader = register(store, write_judge(tmp_path, judge_checkpoint)).grader
    made = planned(store, run_id, "helpful")
    assert made.n_items == N_GENERATED
    run_it(store, made)
    finish_it(store, run_id, "helpful")
    rows = scores(store, run_id, "colour-sums", grader)
    assert {rows[f"g{n:03d}"]["status"] for n in range(3)} == {"ok"}
    # What is longer than the judge reads gets no verdict, and is not wrong on that account.
    assert (rows["g003"]["status"], rows["g003"]["value"]) == ("missing", None)
    assert rows["g003"]["reason"] == "judge: the judge's prompt was cut to its context"


def test_a_generative_judge_writes_and_its_reply_is_kept(
    store: Store, answered: Answered, judge_checkpoint: Path, tmp_path: Path
) -> None:
    run_id = answered()
    verdict = {"max_tokens": 8, "reasoning": {"name": "think", "start": "<think>", "end": "</think>"}}
    answers = {"good": 1, "fair": 0.5, "bad": 0}
    file = write_judge(tmp_path, judge_checkpoint, kind="generative", answers=answers, verdict=verdict)
    grader = register(store, file).grader
    made = planned(store, run_id, "helpful")
    assert {shard.group for shard in made.shards} == {"generation"}
    replies = {
        0: "<think>Verdict: bad</think>Fine.\n**Verdict: Good.**",
        1: "Verdict: fair",
        2: "<think>Verdict: good",
        3: "Verdict: superb",
    }
    answer_it(store, made, by_hand(lambda n: {"output": replies.get(n, "Verdict: bad")}))
    finish_it(store, run_id, "helpful")
    rows = list(scores(store, run_id, "colour-sums", grader).values())
    assert [(row["value"], row["extracted"]) for row in rows[:5]] == [
        (1.0, "good"),
        (0.5, "fair"),
        (None, None),
        (None, None),
        (0.0, "bad"),
    ]
    assert [row["reason"] for row in rows[2:4]] == [
        "judge: no verdict line in the reply",
        "judge: verdict 'superb' is no answer of the set",
    ]
    assert [json.loads(row["detail"])["reply"] for row in rows[:4]] == list(replies.values())


def test_a_generative_judge_runs_on_the_engine(
    store: Store, answered: Answered, judge_checkpoint: Path, tmp_path: Path
) -> None:
    run_id = answered()
    file = write_judge(tmp_path, judge_checkpoint, kind="generative", verdict={"max_tokens": 4})
    grader = register(store, file).grader
    run_it(store, planned(store, run_id, "helpful"))
    finish_it(store, run_id, "helpful")
    rows = scores(store, run_id, "colour-sums", grader)
    assert {row["reason"] for row in rows.values()} == {
        "judge: no verdict line in the reply, which was cut at its most tokens"
    }


def test_a_judging_run_is_no_evaluation(
    store: Store, answered: Answered, judge_checkpoint: Path, tmp_path: Path
) -> None:
    run_id = answered()
    register(store, write_judge(tmp_path, judge_checkpoint))
    made = planned(store, run_id, "helpful")
    answer_it(store, made, lambda _: {"logprobs": (-1.0, -2.0)})
    finish_it(store, run_id, "helpful")
    judging = store.catalog.run(made.run_id)
    assert (judging.status, judging.training_run) == ("closed", "judge/helpful")
    assert store.catalog.runs(judging=True) == [judging]
    assert made.run_id not in {run.run_id for run in store.catalog.runs()}
    for step in (
        lambda: grade(store, run_id=made.run_id),
        lambda: aggregate(store, made.run_id),
        lambda: guard(store, run_id=made.run_id, now=NOW),
        lambda: publish(store, run_id=made.run_id, now=NOW),
        lambda: compare(store, made.run_id, run_id),
        lambda: plan_it(store, made.run_id, "helpful"),
    ):
        with pytest.raises(UserError, match="no evaluation of its checkpoint: it judges outputs of run"):
            step()


def test_two_runs_are_compared_under_one_judge(
    store: Store, checkpoint: Path, judge_checkpoint: Path, answered: Answered, tmp_path: Path
) -> None:
    a = answered()
    other = planned_run(store, checkpoint, repeat=1)
    answer_by_hand(store, other)
    grade(store, run_id=other.run_id)
    answers = {" 1": 0, " 2": 0.5, " 3": 1}
    grader = register(store, write_judge(tmp_path, judge_checkpoint, answers=answers)).grader
    for run_id, mid in ((a, 20), (other.run_id, 4)):
        made = planned(store, run_id, "helpful")
        answer_it(store, made, by_hand(lambda n, mid=mid: {"logprobs": (-3.0, -1.0 if n < mid else -4.0, -2.0)}))
        finish_it(store, run_id, "helpful")
    comparison = compare(store, a, other.run_id, grader=grader)
    [test] = comparison.tests
    assert (test.benchmark, test.score_a, test.score_b) == (
        "colour-sums",
        pytest.approx(1 - 10 / N_GENERATED),
        pytest.approx(1 - 2 / N_GENERATED),
    )
    assert test.n_discordant is None
    assert test.grader == grader


def test_what_does_not_fit_is_refused_by_name(
    store: Store, answered: Answered, judge_checkpoint: Path, tmp_path: Path
) -> None:
    run_id = answered()
    register(store, write_judge(tmp_path, judge_checkpoint))
    common = {"environment": LOCAL, "limits": Limits(), "cache_dir": tmp_path, "now": NOW, "run_id": run_id}
    with pytest.raises(UserError, match="benchmark 'colours' of kind 'choice' has none"):
        plan_grading(store, benchmark_name="colours", grader="helpful", **common)
    with pytest.raises(UserError, match="no benchmark 'colour-sum'; close: 'colour-sums'"):
        plan_grading(store, benchmark_name="colour-sum", grader="helpful", **common)
    with pytest.raises(UserError, match="no grader 'helpfull' of stored outputs; close: 'helpful'"):
        plan_it(store, run_id, "helpfull")
    with pytest.raises(UserError, match="version of grader 'judge/helpful' '2'"):
        plan_it(store, run_id, "helpful@2")
    with pytest.raises(UserError, match="version '1' of it is judge/helpful@1"):
        plan_it(store, run_id, "helpful@1+00000000")
    with pytest.raises(UserError, match="nothing was planned for grader 'judge/helpful@1"):
        finish_it(store, run_id, "helpful")
    open_run = planned_run(store, Path(store.catalog.run(run_id).checkpoint_uri), repeat=3)
    with pytest.raises(UserError, match="is not closed: its outputs are judged once all are there"):
        plan_it(store, open_run.run_id, "helpful")


def test_a_judge_runs_where_its_engine_fits(store: Store, judge_checkpoint: Path, tmp_path: Path) -> None:
    grader = register(store, write_judge(tmp_path, judge_checkpoint, engine={"device": "cuda"}))
    gpu = EnvironmentSpec(name="gpu", device="cuda", gpus=1)
    config = Config(environments=(LOCAL, gpu))
    assert environment_for(config, grader) == gpu
    with pytest.raises(UserError, match="in environment 'local': device is 'cpu' there, and the judge's 'cuda'"):
        environment_for(config, grader, "local")
