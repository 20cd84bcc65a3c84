"""A store with a fixed suite, and whole nights of it in this process with the mock engine: seconds, not minutes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.determinism import PlannedNight, judge_night, plan_night, try_sentinels
from eval_tasks.determinism import sentinels as sentinels_module
from eval_tasks.engine.mock import MockEngine
from eval_tasks.records import Environment, Night, Request, Response
from eval_tasks.run import run_shard
from eval_tasks.run import shard as run_module
from eval_tasks.settings import Config
from eval_tasks.store import Store
from tests.planned import register, write_checkpoint

HOUR = "2026-02-{:02d}T02:00:00+00:00"


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("fixed") / "step-1")


class Nights:
    """`run(1)` is the night of the first; `machine` is what the pods report, `fault` what their engine does wrong."""

    def __init__(self, store: Store, config: Config, cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store = store
        self.config = config
        self.cache_dir = cache_dir
        self.machine = {"driver": "550"}
        self.fault: Callable[[Request, Response], Response] | None = None
        for module in (run_module, sentinels_module):
            monkeypatch.setattr(module, "describe_environment", lambda _: self.environment)
        respond = MockEngine.respond

        def faulty(engine: MockEngine, requests: Any) -> list[Response]:
            rows = respond(engine, requests)
            return [self.fault(q, r) for q, r in zip(requests, rows, strict=True)] if self.fault else rows

        monkeypatch.setattr(MockEngine, "respond", faulty)

    @property
    def environment(self) -> Environment:
        return Environment(components=self.machine)

    def plan(self, day: int, environment: str = "one") -> PlannedNight:
        return plan_night(
            self.store,
            config=self.config,
            environment=environment,
            night=HOUR.format(day),
            cache_dir=self.cache_dir,
            now=HOUR.format(day),
        )

    def compute(self, uri: str) -> None:
        for shard in self.store.plan(uri).shards:
            run_shard(self.store, plan_uri=uri, shard=shard.shard, owner="pod", cache_dir=self.cache_dir, node="n1")

    def judge(self, planned: PlannedNight, day: int) -> Night:
        return judge_night(self.store, planned, policy=self.config.nightly(), now=HOUR.format(day))

    def run(self, day: int, environment: str = "one") -> Night:
        planned = self.plan(day, environment)
        for uri in (planned.plan_uri, planned.perturbed_plan_uri):
            self.compute(uri)
        try_sentinels(self.store, run_id=planned.run_id, cache_dir=self.cache_dir)
        return self.judge(planned, day)


@pytest.fixture
def nights(store: Store, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nights:
    register(store, tmp_path / "benchmarks")
    config = Config.model_validate(
        {
            "environments": [{"name": name, "engine": "mock"} for name in ("one", "two")],
            "determinism": {"suite": "colours-all", "checkpoint": str(checkpoint)},
            "limits": {"shard_cost_tokens": 3000},
        }
    )
    return Nights(store, config, tmp_path / "cache", monkeypatch)


def nudged(request: Request, row: Response) -> Response:
    """One bit of one logprob of one item."""
    if request.item_id != "c003":
        return row
    first = row.token_logprobs[0][0] * (1 + 2**-52)
    return replace(row, token_logprobs=((first, *row.token_logprobs[0][1:]), *row.token_logprobs[1:]))


def worse(request: Request, row: Response) -> Response:
    """Two of seventy choices answered otherwise: 2.9 points."""
    if request.item_id not in ("c001", "c002"):
        return row
    turned = tuple(reversed(row.logprobs)) if row.logprobs[0] != row.logprobs[-1] else (-1.0, *row.logprobs[1:])
    return replace(row, logprobs=turned)
