"""The whole path with the mock engine: marked everywhere, never mixed with real runs, and without torch."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from eval_tasks.aggregate import aggregate
from eval_tasks.compare import compare, diagnose
from eval_tasks.environment import describe_environment
from eval_tasks.errors import NotComparableError, UserError
from eval_tasks.grade import grade
from eval_tasks.guard import guard
from eval_tasks.join_contamination import join_contamination
from eval_tasks.plan import plan, plan_uri
from eval_tasks.publish import publish
from eval_tasks.records import EngineConfig, Plan
from eval_tasks.records.engine import MOCK_MARK
from eval_tasks.register import register_suite
from eval_tasks.resolve import resolve
from eval_tasks.run import run_shard
from eval_tasks.settings import Config, EnvironmentSpec, Limits
from eval_tasks.store import Store
from tests.answered import answered, checkpoint  # noqa: F401 - fixtures
from tests.planned import NOW, register, write_checkpoint, write_suite
from tests.test_light_install import _BLOCK, REPOSITORY

MOCK = EnvironmentSpec(name="mock", engine="mock", mock_accuracy=0.8)


def mocked(store: Store, folder: Path, *, seed: int = 0, suite: str = "colours-all") -> Plan:
    return plan(
        store,
        checkpoint=resolve(store, checkpoint_uri=str(folder), training_run="tiny", step=1),
        checkpoint_dir=folder,
        suite=suite,
        environment=MOCK,
        limits=Limits(shard_cost_tokens=3_000),
        engine=MOCK.engine_config(),
        seed=seed,
        now=NOW,
    )


@pytest.fixture
def evaluated(store: Store, checkpoint: Path, tmp_path: Path) -> Callable[..., str]:  # noqa: F811
    """`evaluated(seed=0) -> run_id`: every step on the mock engine."""
    register(store, tmp_path / "benchmarks")

    def build(seed: int = 0) -> str:
        made = mocked(store, checkpoint, seed=seed)
        for shard in made.shards:
            uri = plan_uri(store, made)
            run_shard(store, plan_uri=uri, shard=shard.shard, owner="pod", cache_dir=tmp_path / "cache")
        grade(store, run_id=made.run_id)
        aggregate(store, made.run_id)
        join_contamination(store, run_id=made.run_id)
        guard(store, run_id=made.run_id, now=NOW)
        return made.run_id

    return build


def test_every_record_is_marked(store: Store, evaluated: Callable[..., str]) -> None:
    run = store.catalog.run(evaluated())
    assert (run.origin, run.training_run, run.status) == ("mock", "mock/tiny", "closed")
    assert store.plan(run.plan_blob or "").notes[0] == MOCK_MARK
    assert dict(store.catalog.environment(run.env_fingerprint or "").components) == {"engine": MOCK_MARK}
    measurements = store.catalog.measurements(run.run_id)
    assert {m.caveat for m in measurements} == {MOCK_MARK}
    accuracy = next(m.score for m in measurements if (m.benchmark, m.metric) == ("colours", "acc"))
    assert accuracy == pytest.approx(0.8, abs=0.15)
    rows = [row for b in run.request.benchmark_ids for row in store.responses.rows(run.run_id, b)]
    assert {row.reason for row in rows} == {MOCK_MARK}
    assert all(alert.title.startswith(MOCK_MARK) for alert in store.catalog.alerts())


def test_a_report_says_it_first(store: Store, evaluated: Callable[..., str]) -> None:
    published = publish(store, run_id=evaluated(), now=NOW)
    assert published.terminal.startswith(MOCK_MARK)
    assert "no model ran: nothing here measures anything" in published.terminal
    page = store.blobs.get(published.html_blob).decode("utf-8")
    assert f"<h1>{MOCK_MARK}: selection evaluation of mock/tiny step 1</h1>" in page
    assert store.blobs.get_json(published.json_blob)["title"].startswith(MOCK_MARK)


def test_an_alert_says_it(store: Store, checkpoint: Path, tmp_path: Path) -> None:  # noqa: F811
    register(store, tmp_path / "benchmarks", plausible_range={"acc": [0.0, 0.1]})
    made = mocked(store, checkpoint)
    for shard in made.shards:
        uri = plan_uri(store, made)
        run_shard(store, plan_uri=uri, shard=shard.shard, owner="pod", cache_dir=tmp_path / "cache")
    grade(store, run_id=made.run_id)
    aggregate(store, made.run_id)
    guard(store, run_id=made.run_id, now=NOW)
    titles = [alert.title for alert in store.catalog.alerts()]
    assert titles
    assert all(title.startswith(f"{MOCK_MARK}: ") for title in titles)


def test_two_mock_runs_are_compared_and_marked(store: Store, evaluated: Callable[..., str]) -> None:
    comparison = compare(store, evaluated(1), evaluated(2))
    assert all(MOCK_MARK in test.notes for test in comparison.tests)
    assert comparison.sources_of_variance["engine"] == MOCK_MARK
    assert comparison.verdict is None
    published = publish(store, run_id=comparison.run_a, comparison_id=comparison.comparison_id, now=NOW)
    assert published.terminal.startswith(MOCK_MARK)


def test_a_mock_run_is_compared_with_no_real_one(
    store: Store,
    evaluated: Callable[..., str],
    answered: Callable[..., str],  # noqa: F811
) -> None:
    mock, real = evaluated(), answered()
    for pair in ((mock, real), (real, mock)):
        with pytest.raises(NotComparableError, match=f"run {mock} is of a mock engine and the other is not"):
            compare(store, *pair)
        with pytest.raises(NotComparableError, match="mock engine"):
            diagnose(store, *pair)
    assert store.catalog.comparisons() == []
    assert [run.run_id for run in store.catalog.runs(training_run="tiny")] == [real]


def test_the_same_request_is_the_same_run_with_the_same_rows(store: Store, evaluated: Callable[..., str]) -> None:
    first = evaluated()
    digest = store.responses.run_rows_digest(first)
    assert evaluated() == first
    assert store.responses.run_rows_digest(first) == digest


def test_the_release_tier_is_refused(store: Store, checkpoint: Path, tmp_path: Path) -> None:  # noqa: F811
    folder = tmp_path / "benchmarks"
    register(store, folder)
    text = write_suite(folder).read_text("utf-8").replace("selection", "release").replace("colours-all", "final")
    (folder / "final.yaml").write_text(text, "utf-8")
    register_suite(store, folder / "final.yaml")
    with pytest.raises(UserError, match=r"'final' is of the release tier.*mock engine"):
        mocked(store, checkpoint, suite="final")
    assert store.catalog.runs() == []


def test_it_is_chosen_by_name_alone() -> None:
    config = Config(environments=(MOCK, EnvironmentSpec(name="local")))
    assert config.environment(None).name == "local"
    assert config.environment("mock").engine_config().is_mock
    assert not EnvironmentSpec(name="local", mock_accuracy=0.5).engine_config().is_mock
    with pytest.raises(UserError, match="no live environment"):
        Config(environments=(MOCK,)).environment(None)
    with pytest.raises(ValueError, match="never live"):
        EnvironmentSpec(name="mock", engine="mock", live=True)


def test_its_environment_is_the_same_wherever_it_runs() -> None:
    one = EngineConfig(mock_accuracy=0.1)
    assert describe_environment(one) == describe_environment(replace(one, device="cuda", threads=2, mock_accuracy=0.9))


_COMMANDS = """
import sys
from eval_tasks.cli import main
for words in {commands!r}:
    assert main(words) in (0, 1), words
assert not {{"torch", "transformers", "safetensors"}} & set(sys.modules)
"""


def test_a_checkpoint_is_evaluated_on_the_command_line_without_torch(tmp_path: Path) -> None:
    """In a process in which torch, transformers and safetensors cannot be imported."""
    folder = write_checkpoint(tmp_path / "step-1")
    suite = write_suite(tmp_path / "benchmarks")
    (tmp_path / "ce").mkdir()
    (tmp_path / "ce" / "config.yaml").write_text("environments: [{name: mock, engine: mock}]", "utf-8")
    files = [str(suite.parent / f"{name}.yaml") for name in ("colours", "colour-text", "colour-sums")]
    commands = [
        *(["benchmarks", "register", file] for file in files),
        ["suites", "register", str(suite)],
        ["evaluate", str(folder), "--suite", "colours-all", "--environment", "mock"],
        ["runs", "list", "--json"],
    ]
    script = _BLOCK.format(blocked={"torch", "transformers", "safetensors"}) + _COMMANDS.format(commands=commands)
    environment = {"PATH": os.defpath, "HOME": str(tmp_path), "CHECKPOINT_EVAL_HOME": str(tmp_path / "ce")}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"\n{MOCK_MARK}: selection evaluation of mock/adhoc step 1\n" in done.stdout
    assert '"origin": "mock"' in done.stdout
