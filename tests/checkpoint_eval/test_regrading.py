"""What the tasks of a regrading do, without Airflow: one stored run, a judge or a scorer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from checkpoint_eval import regrading, steps
from checkpoint_eval.pods import LABEL
from eval_tasks.aggregate import aggregate
from eval_tasks.errors import InfraError, UserError
from eval_tasks.grade import grade
from eval_tasks.settings import Settings
from eval_tasks.store import Store, open_store
from tests.answered import answer_by_hand, checkpoint
from tests.graders.judged import answer_it, write_judge
from tests.graders.judged import register as register_judge
from tests.planned import N_GENERATED, planned, register, write_checkpoint

__all__ = ["checkpoint"]


@pytest.fixture(scope="module")
def judge_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("judge") / "judge", seed=7)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("CHECKPOINT_EVAL_HOME", str(tmp_path / "home"))
    for name in ("STORE_URI", "CATALOG_URL", "CONFIG"):
        monkeypatch.delenv(f"CHECKPOINT_EVAL_{name}", raising=False)
    with open_store(Settings()) as store:
        register(store, tmp_path / "benchmarks")
        yield store


@pytest.fixture
def run_id(home: Store, checkpoint: Path) -> str:
    made = planned(home, checkpoint)
    answer_by_hand(home, made)
    grade(home, run_id=made.run_id)
    aggregate(home, made.run_id)
    return made.run_id


@pytest.fixture
def judge(home: Store, judge_checkpoint: Path, tmp_path: Path) -> str:
    return register_judge(home, write_judge(tmp_path, judge_checkpoint)).grader


def test_a_run_is_chosen_by_its_partition_or_by_name_and_left_out_by_the_form(run_id: str) -> None:
    own: dict[str, Any] = {"grader": "own"}
    assert regrading.choose(own, run_id) == run_id
    assert regrading.choose({**own, "run": run_id[:12]}, None) == run_id
    for filters in ({"training_run": "other"}, {"suite": "colours-all@2"}, {"tier": "health"}, {"benchmark": "none"}):
        assert regrading.choose(own | filters, run_id) == ""
    assert regrading.choose({"grader": "regex"}, run_id) == ""  # nobody's own scorer
    with pytest.raises(UserError, match="create a backfill of this DAG over a window of time, or name a run"):
        regrading.choose(own, None)
    with pytest.raises(UserError, match="no grader 'regexx' of stored outputs"):
        regrading.choose({"grader": "regexx"}, run_id)


def test_a_judge_is_planned_run_by_pods_and_finished_once(home: Store, run_id: str, judge: str) -> None:
    params = {"grader": "helpful"}
    assert regrading.gate(params, run_id) == (True, "open: local")
    [made] = regrading.plan(params, run_id)
    [pod] = steps.pods([made], "logprob", "regrade")
    assert pod["arguments"] == ["run-shard", "--plan", made["plan_uri"], "--shard", "0"]
    assert pod["labels"][f"{LABEL}/tier"] == "regrade"
    assert steps.pods([made], "generation", "regrade") == []
    with pytest.raises(InfraError, match="batches have no result"):
        regrading.regrade(params, run_id)
    answer_it(home, home.plan(made["plan_uri"]), lambda _: {"logprobs": (-1.0, -2.0)})
    done = regrading.regrade(params, run_id)
    assert done == [{"run_id": run_id, "benchmark": "colour-sums", "grader": judge, "own": False}]
    assert regrading.own_runs(done) == []
    uri = regrading.report(params, done)
    assert "What regrading moved" in Path(uri).read_text("utf-8")
    before = home.catalog.runs(judging=None)
    assert regrading.plan(params, run_id) == []
    assert regrading.gate(params, run_id) == (True, "open: no model runs")
    assert regrading.regrade(params, run_id) == done
    assert regrading.report(params, done) == uri
    assert home.catalog.runs(judging=None) == before


def test_a_block_on_the_judges_environment_holds_the_judge_and_no_scorer(
    home: Store, run_id: str, judge: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from eval_tasks.gate import GateResult

    monkeypatch.setattr("eval_tasks.gate.gate", lambda *_, **__: GateResult(open=False, reason="blocked by a person"))
    assert regrading.gate({"grader": "helpful"}, run_id) == (False, "blocked by a person")
    assert regrading.gate({"grader": "own"}, run_id)[0]


def test_scorers_need_no_pods_and_their_report_has_both_scores(home: Store, run_id: str) -> None:
    params = {"grader": "regex", "benchmark": "colour-sums"}
    assert regrading.plan(params, run_id) == []
    done = regrading.regrade(params, run_id)
    assert done[0]["grader"].startswith("rule/regex@1+") and not done[0]["own"]
    regrading.report(params, done)
    reports = {r.format: r.blob_digest for r in home.catalog.reports(run_id)}
    [moved] = json.loads(home.blobs.get(reports["regrade-json"]))["moved"]
    assert (moved["total"]["n_old"], moved["total"]["n_new"]) == (N_GENERATED, N_GENERATED)
    own = regrading.regrade({"grader": "own"}, run_id)
    assert regrading.own_runs(own) == [run_id]
    assert steps.aggregate(regrading.own_runs(own)) == [run_id]


def test_judgings_of_several_benchmarks_share_what_airflow_maps(
    home: Store, run_id: str, judge: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def planner(*_: Any, limits: Any, **__: Any) -> None:
        seen.append(limits.max_shards)

    monkeypatch.setattr("eval_tasks.graders.plan_grading", planner)
    found: Callable[..., Any] = regrading._to_judge
    monkeypatch.setattr(regrading, "_to_judge", lambda *arguments: found(*arguments) * 4)
    assert regrading.plan({"grader": "helpful"}, run_id) == []
    assert seen == [256] * 4
