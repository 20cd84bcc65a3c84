"""What the tasks of a night do, without Airflow: one environment's trouble stops no other's, a difference is told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from checkpoint_eval import nights, steps
from checkpoint_eval.pods import LABEL
from eval_tasks.engine.mock import MockEngine
from eval_tasks.errors import DriftError, InfraError, UserError
from eval_tasks.gate import gate
from eval_tasks.run import run_shard
from eval_tasks.settings import Settings
from eval_tasks.store import Store, open_store
from tests.planned import register, write_checkpoint

NIGHT = "2026-02-01T02:15:00+00:00"


@pytest.fixture(scope="module")
def fixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("fixed") / "step-1")


@pytest.fixture
def home(tmp_path: Path, fixed: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("CHECKPOINT_EVAL_HOME", str(tmp_path / "home"))
    for name in ("STORE_URI", "CATALOG_URL", "CONFIG"):
        monkeypatch.delenv(f"CHECKPOINT_EVAL_{name}", raising=False)
    configure(tmp_path, determinism={"suite": "colours-all", "checkpoint": str(fixed)})
    with open_store(Settings()) as store:
        register(store, tmp_path / "benchmarks")
        yield store


def configure(tmp_path: Path, **fields: Any) -> None:
    environments = [{"name": name, "engine": "mock"} for name in ("one", "two")]
    file = tmp_path / "home/config.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(yaml.safe_dump({"environments": environments, "limits": {"shard_cost_tokens": 3000}, **fields}))


@pytest.fixture(autouse=True)
def _mock_is_live(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mock is never live; here it stands for engines, so that a night takes seconds."""
    from eval_tasks.settings import Config

    monkeypatch.setattr(Config, "live_environments", lambda config: tuple(config.environments))


def compute(store: Store, planned: list[nights.NightOf], tmp_path: Path) -> None:
    """What the pods do."""
    for run in nights.runs(planned):
        for shard in store.plan(run["plan_uri"]).shards:
            run_shard(
                store, plan_uri=run["plan_uri"], shard=shard.shard, owner="pod", cache_dir=tmp_path / "cache", node="n1"
            )


def test_without_a_fixed_suite_nothing_is_run(home: Store, tmp_path: Path) -> None:
    assert nights.is_configured()
    configure(tmp_path)
    assert not nights.is_configured()


def test_a_night_is_two_runs_in_each_environment_and_a_pod_for_each_shard(home: Store, tmp_path: Path) -> None:
    planned = nights.plan(NIGHT, last_try=False)
    assert [(night["environment"], night["error"]) for night in planned] == [("one", ""), ("two", "")]
    runs = nights.runs(planned)
    assert [run["role"] for run in runs] == ["as ever", "perturbed"] * 2
    assert len({run["run_id"] for run in runs}) == 4
    n_shards = sum(len(home.plan(run["plan_uri"]).shards) for run in runs)
    pods = [pod for group in ("logprob", "generation") for pod in steps.pods(runs, group, "determinism")]
    assert len(pods) == n_shards > 8
    assert {pod["labels"][f"{LABEL}/tier"] for pod in pods} == {"determinism"}
    assert nights.plan(NIGHT, last_try=False) == planned, "the same night is the same night"
    assert nights.sentinel_pods(planned) == [], "a mock has no promises to break"


def test_a_good_night_and_one_bit_that_opens_a_block_for_its_environment(
    home: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = nights.plan(NIGHT, last_try=False)
    compute(home, first, tmp_path)
    judged = [nights.judge(night) for night in first]
    assert {one["status"] for one in judged} == {"adopted", "good"}  # both report this machine's fingerprint
    assert all("environment" in nights.verdict(one) for one in judged)

    respond = MockEngine.respond
    monkeypatch.setattr(
        MockEngine,
        "respond",
        lambda engine, requests: [
            replace(row, output=f"{row.output}!") if row.output else row for row in respond(engine, requests)
        ],
    )
    second = nights.plan("2026-02-02", last_try=False)
    compute(home, second, tmp_path)
    worse = nights.judge(second[0])
    assert worse["status"] == "failed" and len(worse["block_ids"]) == 1
    with pytest.raises(DriftError, match=r"environment one: failed: .*items have other rows than the adopted baseline"):
        nights.verdict(worse)
    assert not gate(home, environment="one").open
    (alert,) = home.catalog.alerts()
    assert alert.kind == "determinism_block"
    block_id = worse["block_ids"][0]
    assert nights.to_explain([block_id, block_id]) == [
        {"trigger_run_id": f"block__{block_id}", "conf": {"block_id": block_id}}
    ]
    assert nights.judge(second[0]) == worse, "judged again, it is the same night"


def test_an_environment_that_cannot_be_planned_stops_no_other(
    home: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import eval_tasks.determinism as library

    real = library.plan_night

    def broken(error: Exception) -> Any:
        def plan_night(*arguments: Any, **keywords: Any) -> Any:
            if keywords["environment"] == "one":
                raise error
            return real(*arguments, **keywords)

        return plan_night

    monkeypatch.setattr(library, "plan_night", broken(UserError("no such suite")))
    planned = nights.plan(NIGHT, last_try=False)
    assert [night["error"] for night in planned] == ["UserError: no such suite", ""]
    with pytest.raises(UserError, match="environment one had no night: UserError: no such suite"):
        nights.judge(planned[0])
    compute(home, planned, tmp_path)
    assert nights.judge(planned[1])["status"] == "adopted"

    monkeypatch.setattr(library, "plan_night", broken(InfraError("the bucket is away")))
    with pytest.raises(InfraError, match="bucket"):
        nights.plan("2026-02-02", last_try=False)
    assert nights.plan("2026-02-02", last_try=True)[0]["error"] == "InfraError: the bucket is away"


def test_rows_that_are_missing_are_no_verdict(home: Store) -> None:
    planned = nights.plan(NIGHT, last_try=False)
    with pytest.raises(InfraError, match=r"is incomplete: .* batches have no result"):
        nights.judge(planned[0])
    assert home.catalog.nights() == []
