"""What the flow's tasks do, called as plain functions: ids and URIs in, ids and URIs out."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from checkpoint_eval import steps
from eval_tasks.errors import CheckpointError, EvalError, InfraError, UserError
from eval_tasks.records import DecisionRule, Landing
from eval_tasks.settings import Settings
from eval_tasks.store import Store, open_store
from tests.answered import answer_by_hand
from tests.planned import NOW, register, write_checkpoint

_REPOSITORY = Path(__file__).parents[2]


def trained_on(folder: Path, nudge: float) -> Path:
    """A checkpoint whose weights differ by `nudge`."""
    weights = write_checkpoint(folder) / "model.safetensors"
    tensors = load_file(weights)
    tensors["model.norm.weight"] = (tensors["model.norm.weight"] + np.float32(nudge)).astype(np.float32)
    save_file(tensors, weights, metadata={"format": "pt"})
    return folder


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoints step-10, step-20 and step-30 of one training run, and two trained with other seeds."""
    folder = tmp_path_factory.mktemp("tiny")
    for number, name in enumerate(("step-10", "step-20", "step-30", "seed-b-30", "seed-c-30")):
        trained_on(folder / name, number / 100)
    return folder


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The store that the steps open by themselves, with the suite registered."""
    for name in ("STORE_URI", "CATALOG_URL", "CONFIG"):
        monkeypatch.delenv(f"CHECKPOINT_EVAL_{name}", raising=False)
    monkeypatch.setenv("CHECKPOINT_EVAL_HOME", str(tmp_path / "home"))
    with open_store(Settings()) as opened:
        register(opened, tmp_path / "benchmarks")
        yield opened


def params(root: Path, name: str = "step-20", **changes: Any) -> dict[str, Any]:
    """What the watcher, or the form, gives a DAG run."""
    given = {"checkpoint_uri": str(root / name), "training_run": "tiny", "step": None, "suite": "colours-all"}
    return {**given, "baseline": "none", "rule": None, "environment": None, **changes}


def evaluated(store: Store, given: dict[str, Any]) -> list[steps.PlannedRun]:
    """Everything up to and with `guard`, the pods' work done by hand."""
    planned = steps.plan(given, steps.resolve(given, "health"))
    for run in {run["run_id"]: run for run in planned}.values():
        if not run["awaited"] and not store.responses.is_closed(run["run_id"]):
            answer_by_hand(store, store.plan(run["plan_uri"]))
    steps.guard(steps.join_contamination(steps.aggregate(steps.grade(planned))))
    return planned


def test_the_whole_way_of_one_checkpoint(store: Store, root: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "checkpoint_eval.steps")
    given = params(root, notes="by hand")
    assert steps.gate(given) == (True, "no open block")
    (run,) = planned = evaluated(store, given)
    assert run["role"] == "candidate"
    assert steps.compare(given, planned) is None
    uris = steps.publish(given, planned, None)
    assert list(uris) == ["candidate"]
    assert "by hand" in Path(uris["candidate"].removeprefix("file://")).read_text("utf-8")
    stored = store.catalog.run(run["run_id"])
    assert (stored.status, stored.step, stored.training_run) == ("closed", 20, "tiny")
    for words in ("never checked ['colours'", "row_count: passed", "no baseline (policy 'none')", "colour-text"):
        assert words in caplog.text


def test_what_crosses_between_tasks_is_small_and_json(store: Store, root: Path) -> None:
    given = params(root)
    arms = steps.resolve(given, "health")
    planned = steps.plan(given, arms)
    for value in (arms, planned, steps.pods(planned, "logprob", "health")):
        assert json.loads(json.dumps(value)) == value
    assert len(json.dumps([arms, planned])) < 1000


def test_the_command_line_plans_the_same_run(store: Store, root: Path) -> None:
    from eval_tasks.cli.steps import make_plan

    given = params(root)
    arms = steps.resolve(given, "selection")
    checkpoint = store.catalog.checkpoint(arms[0]["checkpoint_id"])
    assert make_plan(store, checkpoint, "colours-all", None).run_id == steps.plan(given, arms)[0]["run_id"]


def test_the_gate_holds_an_environment_with_a_block_and_refuses_an_unknown_one(store: Store, root: Path) -> None:
    store.catalog.open_block("a" * 32, "rows differ", NOW)
    is_open, reason = steps.gate(params(root))
    assert not is_open and "rows differ" in reason
    with pytest.raises(UserError, match="close: 'local'"):
        steps.gate(params(root, environment="locla"))


def test_a_corrupt_checkpoint_raises_one_alert_however_often_it_is_tried(
    store: Store, root: Path, tmp_path: Path
) -> None:
    folder = write_checkpoint(tmp_path / "step-9")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-7])
    for _ in range(2):
        with pytest.raises(CheckpointError):
            steps.resolve(params(tmp_path, "step-9"), "health")
    (alert,) = store.catalog.alerts()
    assert (alert.kind, alert.training_run) == ("corrupt_checkpoint", "tiny")
    assert alert.title.startswith(f"checkpoint {folder} cannot be evaluated: ")
    assert "model.safetensors" in alert.body
    assert store.catalog.checkpoints() == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"suite": "colour-all"}, "close: 'colours-all'"),
        ({"suite": "colours-all@2"}, "'2'"),
        ({"rule": "ship-it"}, "ship-it"),
        ({"baseline": "prevoius"}, "prevoius"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused_before_anything_is_computed(
    store: Store, root: Path, wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        steps.resolve(params(root, **wrong), "health")
    assert store.catalog.checkpoints() == []


def test_further_seeds_and_a_baseline_folder_are_further_arms(store: Store, root: Path) -> None:
    given = params(root, "step-30", seeds=[str(root / "seed-b-30")], baseline=str(root / "step-10"))
    arms = steps.resolve(given, "health")
    assert [arm["role"] for arm in arms] == ["candidate", "seed", "baseline"]
    assert len({arm["checkpoint_id"] for arm in arms}) == 3
    planned = evaluated(store, given)
    assert [run["role"] for run in planned] == ["candidate", "seed", "baseline"]
    comparison = store.catalog.comparison(steps.compare(given, planned) or "")
    assert (comparison.run_a, comparison.run_b) == (planned[0]["run_id"], planned[2]["run_id"])
    uris = steps.publish(given, planned, comparison.comparison_id)
    assert list(uris) == ["candidate", "seed-1", "baseline"]
    assert len(set(uris.values())) == 3
    runs = {run["role"]: store.catalog.run(run["run_id"]) for run in planned}
    assert (runs["seed"].training_run, runs["baseline"].training_run) == ("tiny-seed-1", "tiny-baseline")


def test_two_further_seeds_and_the_candidate_are_a_study_that_answers_for_the_recipe(store: Store, root: Path) -> None:
    seeds = [str(root / "seed-b-30"), str(root / "seed-c-30")]
    given = params(root, "step-30", seeds=seeds, baseline=str(root / "step-10"))
    planned = evaluated(store, given)
    comparison = store.catalog.comparison(steps.compare(given, planned) or "")
    (study,) = store.catalog.seed_studies()
    assert study.reference == "tiny-seeds@1" and len(study.runs) == 3 and study.scale.step == 30
    assert comparison.recipes is not None and comparison.recipes.study == "tiny-seeds@1"
    assert steps.compare(given, planned) == comparison.comparison_id
    assert len(store.catalog.seed_studies()) == 1, "a retry records nothing twice"


def test_seeds_that_are_no_study_hold_up_nothing(store: Store, root: Path, caplog: pytest.LogCaptureFixture) -> None:
    seeds = [str(root / "seed-b-30"), str(root / "step-20")]
    given = params(root, "step-30", seeds=seeds, baseline=str(root / "step-10"))
    assert steps.compare(given, evaluated(store, given)) is not None
    assert "the further seeds are no seed study: the runs are of steps 20, 30" in caplog.text


def test_an_arm_that_was_evaluated_before_has_nothing_left_to_do(store: Store, root: Path) -> None:
    first = evaluated(store, params(root, "step-10"))
    again = steps.plan(given := params(root, "step-20", baseline=str(root / "step-10")), steps.resolve(given, "health"))
    assert again[1]["run_id"] == first[0]["run_id"]
    wanted = steps.pods(again, "logprob", "release")
    assert {pod["labels"]["checkpoint-eval/run"] for pod in wanted} == {again[0]["run_id"]}


def dispatched(store: Store, root: Path, *names: str, tiers: tuple[str, ...] = ("health",)) -> None:
    """Enter landings of these steps into the ledger, as the watcher does when it has started their evaluation."""
    for name in names:
        step = int(name.rpartition("-")[2])
        landing = Landing(training_run="tiny", step=step, uri=str(root / name), listing=(("config.json", 1, "a"),))
        store.catalog.see_landing(landing, NOW)
        dag_runs = tuple(f"{tier}__tiny__{step}__x" for tier in tiers)
        store.catalog.mark_landing(landing.landing_id, state="dispatched", dag_runs=dag_runs, now=NOW)


@pytest.mark.parametrize(("policy", "step"), [("none", None), ("previous", 20), ("first", 10)])
def test_a_baseline_by_policy_is_the_ledgers_choice_by_step(
    store: Store, root: Path, policy: str, step: int | None
) -> None:
    dispatched(store, root, "step-10", "step-20", "step-30")
    for name in ("step-10", "step-20"):
        evaluated(store, params(root, name, step=int(name[-2:])))
    given = params(root, "step-30", baseline=policy, step=30)
    planned = evaluated(store, given)
    comparison_id = steps.compare(given, planned)
    assert (comparison_id is None) == (step is None)
    if comparison_id:
        assert store.catalog.run(store.catalog.comparison(comparison_id).run_b).step == step


def test_nothing_below_the_candidate_is_no_baseline(store: Store, root: Path) -> None:
    dispatched(store, root, "step-20", "step-30")
    given = params(root, "step-20", baseline="previous", step=20)
    planned = evaluated(store, given)
    assert [run["role"] for run in planned] == ["candidate"]
    assert steps.compare(given, planned) is None


def test_a_baseline_that_another_dag_run_evaluates_is_awaited_and_never_holds_up_for_good(
    store: Store, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dispatched(store, root, "step-10")
    given = params(root, "step-20", baseline="previous", step=20)
    planned = evaluated(store, given)
    assert [run["awaited"] for run in planned] == ["", "health__tiny__10__x"]
    assert {pod["labels"]["checkpoint-eval/run"] for pod in steps.pods(planned, "logprob", "health")} == set()
    assert list(steps.publish(given, planned, None)) == ["candidate"]
    with pytest.raises(InfraError, match=r"step 10\) is planned, not evaluated yet"):
        steps.compare(given, planned, last_try=False)
    assert steps.compare(given, planned, last_try=True) is None
    assert "going on without a comparison" in caplog.text
    evaluated(store, params(root, "step-10", step=10))
    assert steps.compare(given, planned, last_try=False) is not None


def test_a_first_checkpoint_that_this_tier_did_not_evaluate_is_a_further_arm(store: Store, root: Path) -> None:
    dispatched(store, root, "step-10", "step-20")
    given = params(root, "step-30", baseline="first", step=30)
    planned = steps.plan(given, steps.resolve(given, "selection"))
    assert [(run["role"], run["awaited"]) for run in planned] == [("candidate", ""), ("baseline", "")]
    wanted = steps.pods(planned, "logprob", "selection")
    assert {pod["labels"]["checkpoint-eval/run"] for pod in wanted} == {run["run_id"] for run in planned}
    assert store.catalog.run(planned[1]["run_id"]).training_run == "tiny"


@pytest.mark.parametrize("was_evaluated", [True, False])
def test_a_baseline_that_was_deleted_never_holds_up_the_candidate(
    store: Store, root: Path, tmp_path: Path, was_evaluated: bool
) -> None:
    """Trainers keep the last few checkpoints: the rows of an older one stand for it, where there are any."""
    old = tmp_path / "step-10"
    shutil.copytree(root / "step-10", old)
    dispatched(store, tmp_path, "step-10")
    if was_evaluated:
        evaluated(store, params(tmp_path, "step-10", step=10))
    shutil.rmtree(old)
    given = params(root, "step-20", baseline="previous", step=20)
    planned = evaluated(store, given)
    assert [run["role"] for run in planned] == ["candidate"]
    comparison_id = steps.compare(given, planned)
    assert (comparison_id is not None) == was_evaluated
    if comparison_id:
        assert store.catalog.run(store.catalog.comparison(comparison_id).run_b).step == 10
    assert store.catalog.alerts() == []


@pytest.mark.parametrize("what", ["deleted", "broken"])
def test_a_baseline_that_ends_between_two_tasks_never_holds_up_the_candidate(
    store: Store, root: Path, tmp_path: Path, what: str
) -> None:
    old = tmp_path / "step-10"
    shutil.copytree(root / "step-10", old)
    if what == "broken":
        (old / "tokenizer.json").write_text('{"version": "1.0"}', "utf-8")  # complete, and no tokenizer
    dispatched(store, tmp_path, "step-10")
    given = params(root, "step-20", baseline="previous", step=20)
    arms = steps.resolve(given, "health")
    assert [arm["role"] for arm in arms] == ["candidate", "baseline"]
    if what == "deleted":
        shutil.rmtree(old)
    assert [run["role"] for run in steps.plan(given, arms)] == ["candidate"]
    with pytest.raises(EvalError, match="step-10"):
        steps.plan(params(root, "step-20", baseline=str(old)), arms)


def test_pods_of_all_arms_together_stay_below_what_airflow_maps(store: Store, root: Path) -> None:
    limits = {"max_shards": 4, "shard_cost_tokens": 1}
    (Settings().home / "config.yaml").write_text(json.dumps({"limits": limits}), "utf-8")
    alone = params(root, "step-10")
    one = steps.plan(alone, steps.resolve(alone, "release"))
    assert len(store.plan(one[0]["plan_uri"]).shards) == 4
    given = params(root, "step-20", seeds=[str(root / "seed-b-30")])
    planned = steps.plan(given, steps.resolve(given, "release"))
    assert sum(len(store.plan(run["plan_uri"]).shards) for run in planned) == 4


def test_a_baseline_can_be_named_by_the_beginning_of_its_run_id(store: Store, root: Path) -> None:
    (baseline,) = evaluated(store, params(root, "step-10"))
    given = params(root, "step-20", baseline=baseline["run_id"][:12])
    comparison = store.catalog.comparison(steps.compare(given, evaluated(store, given)) or "")
    assert comparison.run_b == baseline["run_id"]


def test_a_rule_registered_before_the_run_decides(store: Store, root: Path) -> None:
    rule = DecisionRule(
        name="ship", kind="superiority", metric="primary", components={"colours": 1.0}, registered_at=NOW
    )
    store.catalog.save_rule(rule)
    given = params(root, "step-20", baseline=str(root / "step-10"), rule="ship")
    comparison = store.catalog.comparison(steps.compare(given, evaluated(store, given)) or "")
    assert comparison.verdict == "INDISTINGUISHABLE"
    assert not comparison.exploratory


def test_who_approves_is_told_what_the_suite_can_find(store: Store, root: Path) -> None:
    n = store.catalog.benchmark("colours").n_items
    before = steps.power(params(root))
    assert f"| colours@1 | {n} |" in before and "10.0 % differ, assumed" in before
    evaluated(store, params(root, "step-10"))
    given = params(root, "step-20", baseline=str(root / "step-10"))
    steps.compare(given, evaluated(store, given))
    assert f"observed in 1 past comparison, {n} pairs" in steps.power(params(root, suite="colours-all@1"))


def test_pods_are_split_by_group_and_closed_runs_have_none(store: Store, root: Path) -> None:
    given = params(root)
    planned = steps.plan(given, steps.resolve(given, "health"))
    plan = store.plan(planned[0]["plan_uri"])
    pods = {group: steps.pods(planned, group, "selection") for group in ("logprob", "generation")}
    for group, wanted in pods.items():
        shards = [str(s.shard) for s in plan.shards if s.group == group]
        assert [pod["labels"]["checkpoint-eval/shard"] for pod in wanted] == shards
        assert {pod["labels"]["checkpoint-eval/tier"] for pod in wanted} == {"selection"}
        assert all(pod["arguments"][:3] == ["run-shard", "--plan", planned[0]["plan_uri"]] for pod in wanted)
    assert sum(map(len, pods.values())) == len(plan.shards)
    answer_by_hand(store, plan)
    steps.grade(planned)
    assert [steps.pods(planned, group, "selection") for group in pods] == [[], []]


def test_two_arms_of_one_content_are_one_set_of_pods(store: Store, root: Path) -> None:
    given = params(root, "step-10", baseline=str(root / "step-10"))
    planned = steps.plan(given, steps.resolve(given, "health"))
    assert planned[0]["run_id"] == planned[1]["run_id"]
    assert steps.pods(planned, "logprob", "release") == steps.pods(planned[:1], "logprob", "release")


def test_missing_rows_are_worth_another_try(store: Store, root: Path) -> None:
    given = params(root)
    planned = steps.plan(given, steps.resolve(given, "health"))
    with pytest.raises(InfraError, match="incomplete"):
        steps.grade(planned)


def test_alerts_of_the_runs_are_in_the_log_of_publish(
    store: Store, root: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = params(root)
    planned = steps.plan(given, steps.resolve(given, "health"))
    cut = {"output_truncated": True, "finish_reason": "length"}
    answer_by_hand(store, store.plan(planned[0]["plan_uri"]), lambda name, _n: cut if name == "colour-sums" else {})
    steps.guard(steps.join_contamination(steps.aggregate(steps.grade(planned))))
    caplog.set_level(logging.INFO, "checkpoint_eval.steps")
    steps.publish(given, planned, None)
    (record,) = (r for r in caplog.records if r.levelno == logging.WARNING)
    assert record.getMessage().startswith("ALERT colour-sums strict quarantined in run ")
    assert record.getMessage().count("gold: ") == 5


def test_importing_the_steps_imports_none_of_the_library() -> None:
    script = (
        f"import sys; sys.path[:0] = [{str(_REPOSITORY)!r}, {str(_REPOSITORY / 'plugins')!r}]; "
        "import checkpoint_eval.steps; "
        "sys.exit(' '.join(m for m in sys.modules if m.split('.')[0] in ('eval_tasks', 'airflow', 'pydantic')) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_health_of_the_candidate_is_looked_at_and_shown(
    store: Store, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "checkpoint_eval.steps")
    evaluated(store, params(root, "step-10"))
    planned = evaluated(store, params(root, "step-20"))
    assert steps.health(planned) == []
    assert "no alarm" in caplog.text and "Look 2 at this training run" in caplog.text
    steps.health(planned)
    uris = steps.publish(params(root), planned, None)
    assert "Health of the training run" in Path(uris["candidate"].removeprefix("file://")).read_text("utf-8")


def test_selection_is_among_the_checkpoints_so_far(store: Store, root: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "checkpoint_eval.steps")
    first = evaluated(store, params(root, "step-10"))
    assert steps.select(first) == "" and "nothing to select among" in caplog.text
    planned = evaluated(store, params(root, "step-20"))
    selection = store.catalog.selection(planned[0]["run_id"])
    assert selection is None
    assert len(steps.select(planned)) == 32
    selection = store.catalog.selection(planned[0]["run_id"])
    assert selection is not None and selection.runs == (first[0]["run_id"], planned[0]["run_id"])
    assert "best of 2 on 70 items" in caplog.text
