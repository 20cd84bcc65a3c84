"""`make simulate-month`: 30 days of three training runs in minutes, against the real ledger, gate, guard and alerts.

1,440 checkpoints, one every half hour, into three environments; one environment's machines are rolled out half way, two
blocks hold an environment for hours each, a webhook is down for two days. Planted besides: outputs that collapsed,
broken and incomplete uploads, an evaluation that hangs, a budget that runs out, watchers that die between firing and
recording.

Storage is real files, rows are written by hand in place of an engine, Airflow is a set of run ids, and time is given.
One JSON line says what became of all of it; anything lost, double or told twice ends the program with its name.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from checkpoint_eval.ledger import Watch, dispatches, record_dispatch
from eval_tasks.aggregate import aggregate
from eval_tasks.alerts import channels_of, deliver, raise_late
from eval_tasks.blocking import open_block
from eval_tasks.budgets import account, reserve
from eval_tasks.checkpoint import fetch
from eval_tasks.errors import BudgetError
from eval_tasks.gate import Waiting, gate
from eval_tasks.grade import grade
from eval_tasks.guard import guard
from eval_tasks.plan import plan
from eval_tasks.records import Response
from eval_tasks.register import register_benchmark, register_suite
from eval_tasks.resolve import resolve
from eval_tasks.settings import Config, Settings, load_config
from eval_tasks.store import Store, open_store
from tests.alerts.receivers import Webhook
from tests.answered import right, sound
from tests.planned import write_checkpoint, write_suite

START = datetime(2026, 3, 1, tzinfo=UTC)
HALF_HOUR = timedelta(minutes=30)
RUNS = ("alpha", "beta", "gamma")
KEPT = 25


@dataclass(frozen=True)
class Happening:
    """What is planted, in half hours since the start; scaled to the number of checkpoints."""

    n: int

    def at(self, day: float) -> int:
        return round(day / 30 * self.n)

    @property
    def blocks(self) -> dict[str, tuple[int, int]]:
        """Environment -> from when to when it is held."""
        hours = max(2, self.n // 120)
        return {"env-alpha": (self.at(8), self.at(8) + hours), "env-gamma": (self.at(22), self.at(22) + hours)}

    @property
    def rollout(self) -> int:
        return self.at(15)

    @property
    def webhook_down(self) -> tuple[int, int]:
        """Two days, into which a block, two collapses, a broken and an incomplete upload fall."""
        return self.at(20.5), self.at(22.5)

    def planted(self, days: tuple[float, ...]) -> set[int]:
        return {self.at(day) for day in days}

    @property
    def collapsed(self) -> set[int]:
        return self.planted((3.1, 9.3, 14.2, 20.8, 21.4, 27.7))

    @property
    def broken(self) -> set[int]:
        return self.planted((5.5, 21.1, 25.3))

    @property
    def incomplete(self) -> set[int]:
        return self.planted((11.6, 21.7))

    @property
    def hanging(self) -> set[int]:
        return self.planted((17.2,))


@dataclass
class Month:
    """The world: a store, checkpoint storage, an Airflow, a webhook, a clock."""

    folder: Path
    n: int
    webhook: Webhook
    now: datetime = START
    started: Counter[str] = field(default_factory=Counter)
    queued: list[dict[str, Any]] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    released: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.plan = Happening(self.n)
        self.template = write_checkpoint(self.folder / "template")
        home = self.folder / "home"
        home.mkdir()
        os.environ["CHECKPOINT_EVAL_HOME"] = str(home)
        self.config_file = home / "config.yaml"
        self._configure(selection_tokens=None)
        self.store: Store = open_store(Settings())
        suite = write_suite(self.folder / "benchmarks", chance_level=0.25, plausible_range={"acc": [0.1, 1.0]})
        register_benchmark(self.store, self.folder / "benchmarks" / "colours.yaml", START.isoformat())
        for name, tier in (("watch", "health"), ("pick", "selection")):
            suite.write_text(
                yaml.safe_dump({"name": name, "version": "1", "tier": tier, "benchmarks": [{"name": "colours"}]})
            )
            register_suite(self.store, suite)
        self.watch = Watch(self.store)
        self.channels = channels_of(self.config.alerts)
        self.limited = False

    @property
    def config(self) -> Config:
        return load_config(self.config_file)

    def _configure(self, *, selection_tokens: int | None) -> None:
        runs = [
            {
                "name": name,
                "uri": str(self.folder / "runs" / name),
                "quiet_seconds": 60,
                "alert_after_seconds": 3600,
                "environment": f"env-{name}",
                "health": {"suite": "watch"},
                "selection": {"suite": "pick", "every": max(2, self.n // 72)},
            }
            for name in RUNS
        ]
        budgets = (
            [{"tier": "selection", "training_run": "alpha", "tokens": selection_tokens}] if selection_tokens else []
        )
        document = {
            "training_runs": runs,
            "environments": [{"name": f"env-{name}"} for name in RUNS],
            "alerts": {"channels": [{"name": "on-call", "url": self.webhook.url, "timeout_seconds": 5}]},
            "budgets": budgets,
        }
        self.config_file.write_text(yaml.safe_dump(document))

    def fingerprint(self, environment: str, k: int) -> str:
        """The machines of an environment; one is rolled out half way, and both kinds serve for a day."""
        if environment != "env-beta" or k < self.plan.rollout:
            kind = 1
        else:
            kind = 2 if k >= self.plan.rollout + self.n // 30 or k % 2 else 1
        return f"{environment[4:]}-{kind}".encode().hex()[:32].ljust(32, "0")

    def live(self) -> None:
        """Every half hour of the month, and an evening to finish."""
        for k in range(self.n):
            self._happen(k)
            self._land(k)
            self._minutes(k, (0, 2, 16))
        for k in range(self.n, self.n + 12):
            self._happen(k)
            self._minutes(k, (0, 2, 16))

    def _happen(self, k: int) -> None:
        down, up = self.plan.webhook_down
        self.webhook.status = 503 if down <= k < up else 200
        for environment, (begin, end) in self.plan.blocks.items():
            if k == begin:
                run = next(r for r in self.store.catalog.runs(training_run=environment[4:]) if r.env_fingerprint)
                open_block(self.store, run, "rows_changed", "planted", now=self._moment(k).isoformat())
            if k == end:
                for block in self.store.catalog.open_blocks():
                    self.store.catalog.explain_block(block.block_id, "kim", "a driver was put back", self._moment(k))
        if k == self.plan.at(18) and not self.limited:
            self.limited = True
            spent = self.store.catalog.costs(training_run="alpha", tier="selection")
            self._configure(selection_tokens=sum(entry.standing.tokens for entry in spent) + 1)

    def _moment(self, k: int, minutes: float = 0) -> datetime:
        return START + k * HALF_HOUR + timedelta(minutes=minutes)

    def _land(self, k: int) -> None:
        root = self.folder / "runs" / RUNS[k % 3]
        step = root / f"step-{k}"
        step.mkdir(parents=True)
        for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
            if (self.template / name).exists():
                shutil.copy(self.template / name, step / name)
        data = (self.template / "model.safetensors").read_bytes()
        data = data[:-4] + k.to_bytes(4, "little")
        if k in self.plan.broken:
            data = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 1234\n"
        if k in self.plan.incomplete:
            data = data[:-9]
        (step / "model.safetensors").write_bytes(data)
        steps = sorted(root.iterdir(), key=lambda path: int(path.name[5:]))
        for old in steps[:-KEPT]:
            shutil.rmtree(old)

    def _minutes(self, k: int, minutes: tuple[float, ...]) -> None:
        for minute in minutes:
            self.now = self._moment(k, minute)
            config = self.config
            landing_ids = self.watch.poll(config, self.now)
            due = dispatches(self.store, config, landing_ids, self.now)
            for dispatch in due:
                self._trigger(dispatch)
            if not (due and k % 17 == 3 and minute == 2):  # a watcher that dies before it records: fired again
                record_dispatch(self.store, {d["conf"]["landing_id"] for d in due}, self.now)
            self._evaluate(k, config)
            raise_late(self.store, config, self.now)
            deliver(self.store, self.channels, config.alerts, owner="simulated", clock=lambda: self.now)

    def _trigger(self, dispatch: dict[str, Any]) -> None:
        """As TriggerDagRunOperator with skip_when_already_exists."""
        run_id = dispatch["trigger_run_id"]
        if not self.started[run_id]:
            self.queued.append(dispatch)
        self.started[run_id] = 1

    def _evaluate(self, k: int, config: Config) -> None:
        waiting = []
        for dispatch in self.queued:
            conf, run_id = dispatch["conf"], dispatch["trigger_run_id"]
            place = f"{conf['step']:020d} {run_id}"
            asked = Waiting(ticket=run_id, place=place, now=self.now)
            hangs = conf["step"] in self.plan.hanging and self.now < self._moment(conf["step"], 40)
            if hangs or not gate(self.store, environment=conf["environment"], waiting=asked).open:
                waiting.append(dispatch)
                continue
            self._run(dispatch, k, config)
        self.queued = waiting

    def _run(self, dispatch: dict[str, Any], k: int, config: Config) -> None:
        conf, store, moment = dispatch["conf"], self.store, self.now.isoformat(timespec="seconds")
        spec = config.environment(conf["environment"])
        checkpoint = resolve(
            store, checkpoint_uri=conf["checkpoint_uri"], training_run=conf["training_run"], step=conf["step"]
        )
        made = plan(
            store,
            checkpoint=checkpoint,
            checkpoint_dir=fetch(checkpoint, self.folder / "cache"),
            suite=conf["suite"],
            environment=spec,
            limits=config.limits,
            engine=spec.engine_config(),
            now=moment,
        )
        try:
            reserve(store, made, spec, config, moment)
        except BudgetError:
            self.stopped.append(dispatch["trigger_run_id"])
            store.catalog.finish_landing(conf["landing_id"], dispatch["trigger_run_id"])
            return
        fingerprint = self.fingerprint(conf["environment"], k)
        store.catalog.see_environment(conf["environment"], fingerprint, self.now)
        store.catalog.pin_environment(made.run_id, fingerprint)
        self._pods(made, conf["step"], fingerprint)
        grade(store, run_id=made.run_id)
        store.catalog.update_run(made.run_id, closed_at=moment)
        account(store, made.run_id, config)
        aggregate(store, made.run_id)
        by = "great_expectations" if conf["step"] in self.plan.collapsed or conf["step"] % 50 == 0 else "built_in"
        guard(store, run_id=made.run_id, now=moment, validator=by)  # type: ignore[arg-type]
        store.catalog.finish_landing(conf["landing_id"], dispatch["trigger_run_id"])
        self.done[dispatch["trigger_run_id"]] += 1
        if conf["tier"] == "health":
            self.released.append(conf["training_run"] + f" {conf['step']:06d}")

    def _pods(self, made: Any, step: int, fingerprint: str) -> None:
        """Rows as an engine would leave them: the model gets better, unless its outputs have collapsed."""
        answer = right(0.35 + 0.5 * step / self.n)
        for batch in self.store.blobs.get_batches(made.batches_blob):
            rows = []
            for item_id in batch.item_ids:
                number = int(item_id[1:])
                fields = {
                    "status": "ok",
                    "prompt_digest": "0" * 64,
                    "n_prompt_tokens": 20,
                    **sound("colours", number),
                    **answer("colours", number),
                }
                if step in self.plan.collapsed:
                    values = (-1.0, -2.0, -3.0, -4.0)
                    fields |= {"logprobs": values, "token_logprobs": tuple((value,) for value in values)}
                rows.append(Response(benchmark_id=batch.benchmark_id, item_id=item_id, **fields))  # type: ignore[arg-type]
            assert self.store.queue.try_claim(made.run_id, batch.batch, "pod", 60, self.now)
            result_id = self.store.responses.write_batch(made.run_id, batch.shard, batch.batch, rows)
            assert self.store.queue.try_complete(made.run_id, batch.batch, "pod", result_id)
        for shard in made.shards:
            self.store.catalog.record_shard(
                made.run_id, shard.shard, status="done", env_fingerprint=fingerprint, n_items=shard.n_items, seconds=9.0
            )

    def verdict(self) -> dict[str, Any]:
        """What became of it. Raises SystemExit naming what was lost, double, or told twice."""
        rows = [row for name in RUNS for row in self.store.catalog.landings(name)]
        planted = self.plan
        expected = set(range(self.n)) - planted.broken - planted.incomplete
        health = self.store.catalog.runs(tier="health")
        alerts = self.store.catalog.alerts()
        told = [payload["message"].partition("alerts acknowledge ")[2].split()[0] for payload in self.webhook.received]
        kinds = Counter(alert.kind for alert in alerts)
        wanted = {
            "excursion": len(planted.collapsed) + _selected(self.done, planted.collapsed),
            "checkpoint_broken": len(planted.broken),
            "checkpoint_incomplete": len(planted.incomplete),
            "determinism_block": len(planted.blocks),
            "health_late": len(planted.hanging),
            "budget_exceeded": 1,
        }
        claims = {
            "every sound checkpoint was evaluated": Counter(r.step for r in health) == Counter(expected),
            "every run is closed and guarded": all(
                r.status == "closed" and self.store.catalog.guard(r.run_id) for r in health
            ),
            "no evaluation ran twice": set(self.done.values()) == {1},
            "everything started has ended": not self.queued and set(self.started) == {*self.done, *self.stopped},
            "the ledger says so": all(
                set(row.dag_runs) <= set(row.finished) for row in rows if row.state in ("ready", "dispatched")
            )
            and Counter(row.state for row in rows)["dispatched"] == len(expected),
            "steps of a training run went in order": all(
                [r for r in self.released if r.startswith(name)]
                == sorted(r for r in self.released if r.startswith(name))
                for name in RUNS
            ),
            "no run straddles two fingerprints": all(
                {s.env_fingerprint for s in self.store.catalog.shards(r.run_id)} == {r.env_fingerprint} for r in health
            ),
            "both kinds of the rolled out machines served": len(self.store.catalog.fingerprints_of("env-beta")) == 2,
            "a budget stops selection alone": bool(self.stopped)
            and all(s.startswith("selection__alpha__") for s in self.stopped),
            "alerts are those that were planted": dict(kinds) == wanted,
            "each alert was told once": Counter(told) == Counter({a.alert_id: 1 for a in alerts}),
            "quarantined are the collapsed ones alone": {
                r.step for r in health if any(m.quarantined for m in self.store.catalog.measurements(r.run_id))
            }
            == planted.collapsed,
            "the webhook was down while it was wanted": self.webhook.n_requests > len(told),
        }
        broken = [claim for claim, holds in claims.items() if not holds]
        if broken:
            raise SystemExit(f"not so: {'; '.join(broken)}\nalerts {dict(kinds)}, expected {wanted}; told {len(told)}")
        return {
            "checkpoints": self.n,
            "evaluations": sum(self.done.values()),
            "stopped_by_budget": len(self.stopped),
            "alerts": len(alerts),
            "messages": len(told),
            "attempts": self.webhook.n_requests,
            "claims_that_hold": len(claims),
        }


def _selected(done: Counter[str], steps: set[int]) -> int:
    """How many selection evaluations there were of these steps."""
    return sum(1 for run_id in done if run_id.startswith("selection__") and int(run_id.split("__")[2]) in steps)


def simulate(folder: Path, n: int) -> dict[str, Any]:
    """Live through `n` half hours, and say what became of it."""
    before = os.environ.get("CHECKPOINT_EVAL_HOME")
    try:
        with Webhook() as webhook:
            month = Month(folder=folder, n=n, webhook=webhook)
            with month.store:
                month.live()
                return month.verdict()
    finally:
        os.environ.pop("CHECKPOINT_EVAL_HOME", None)
        if before is not None:
            os.environ["CHECKPOINT_EVAL_HOME"] = before


def main() -> None:
    """Simulate, print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoints", type=int, default=1440)
    asked = parser.parse_args()
    logging.disable(logging.WARNING)
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        line = simulate(Path(folder), asked.checkpoints)
    print(json.dumps({"simulation": "month", **line, "minutes": round((time.monotonic() - began) / 60, 1)}))  # noqa: T201


if __name__ == "__main__":
    main()
