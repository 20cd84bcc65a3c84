"""A live embedded installation, Airflow and the local pod API as processes, and what a person would do with it."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import yaml

from checkpoint_eval.embedded import Endpoint, up
from eval_tasks.register import register_rule
from eval_tasks.settings import Settings
from eval_tasks.store import Store, open_store
from tests.planned import register

# The demo's scripts import one another by name; `demo` itself is one of them, once `tests/demo` is collected.
sys.path.insert(0, str(Path(__file__).parents[2] / "demo"))
from follow import AirflowClient

TRAINING_RUN = "tiny"


@dataclass
class Installation:
    """What a test needs of a live installation."""

    home: Path
    endpoint: Endpoint
    airflow: AirflowClient
    store: Store

    def land(self, step: int, source: Path, *, pause_seconds: float = 0.0) -> Path:
        """Write a checkpoint file by file, the weights last, as a training job does."""
        folder = self.home / "checkpoints" / f"step-{step}"
        folder.mkdir(parents=True)
        for file in sorted(source.iterdir(), key=lambda f: f.suffix == ".safetensors"):
            if file.suffix == ".safetensors":
                time.sleep(pause_seconds)
            shutil.copyfile(file, folder / file.name)
        return folder

    def wait(self, condition: Callable[[], Any], what: str, timeout_seconds: float = 300) -> Any:
        """The first true value of `condition`; a failed DAG run or the time limit ends the test."""
        deadline = time.monotonic() + timeout_seconds
        while not (value := condition()):
            for dag_id in ("evaluate_health", "evaluate_selection"):
                failed = [run for run, state in self.airflow.dag_runs(dag_id).items() if state == "failed"]
                assert not failed, f"{dag_id}: {failed} failed; logs under {self.home}"
            assert time.monotonic() < deadline, f"no {what} after {timeout_seconds} s; logs under {self.home / 'logs'}"
            time.sleep(1)
        return value

    def pods(self) -> list[psutil.Process]:
        """Worker processes of this installation's pods."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            command = process.info["cmdline"] or []
            if "run-shard" in command and any(str(self.home) in part for part in command):
                found.append(process)
        return found

    def finished(self, dag_id: str, n: int) -> bool:
        """Whether `n` runs of a DAG have succeeded."""
        return sum(state == "success" for state in self.airflow.dag_runs(dag_id).values()) >= n


def start(
    home: Path, *, standalone: bool, every: int = 2, max_tokens: int = 6, further: dict[str, Any] | None = None
) -> Installation:
    """Register a small suite and a rule, write the configuration (with `further` fields), start everything."""
    home.mkdir(parents=True, exist_ok=True)
    store = open_store(Settings(home=home))
    register(store, home / "benchmarks", max_tokens=max_tokens)
    rule = {"name": "ship-it", "kind": "superiority", "metric": "acc", "components": {"colours": 1.0}}
    (home / "rule.yaml").write_text(yaml.safe_dump(rule), "utf-8")
    register_rule(store, home / "rule.yaml", datetime.now(UTC).isoformat(timespec="seconds"))
    training_run = {
        "name": TRAINING_RUN,
        "uri": str(home / "checkpoints"),
        "quiet_seconds": 1,
        "health": {"suite": "colours-all", "baseline": "previous"},
        "selection": {"suite": "colours-all", "every": every, "baseline": "first", "rule": "ship-it"},
    }
    config = {
        "training_runs": [training_run],
        "poll_seconds": 1,
        "limits": {"shard_cost_tokens": 8000, "lease_seconds": 20},
        **(further or {}),
    }
    (home / "checkpoints").mkdir()
    (home / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    endpoint = up(home, port=_free_port(), standalone=standalone)
    return Installation(home=home, endpoint=endpoint, airflow=AirflowClient(endpoint), store=store)


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
