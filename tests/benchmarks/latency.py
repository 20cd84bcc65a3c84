"""`make bench-latency`: seconds from the landing of a checkpoint to its first pod running, and where they go.

A live embedded installation with an idle machine is measured: checkpoints land one at a time, each after the one before
it was evaluated. Quiet period and poll interval are as short as they can be and are counted apart. One JSON line: the
median latency without the quiet period, and the medians of its parts.
"""

from __future__ import annotations

import json
import shutil
import statistics
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config

from checkpoint_eval.embedded import down
from tests.end_to_end.installation import Installation, start
from tests.planned import write_checkpoint

N_CHECKPOINTS = 5
NAMESPACE = "checkpoint-eval"
QUIET_SECONDS = 1.0
STEPS = ("gate", "resolve", "plan", "logprob.pods", "logprob.run_shard")


def main() -> None:
    """Measure, print one JSON line."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        source = write_checkpoint(Path(folder) / "source" / "model")
        try:
            installation = start(home, standalone=False)
            _only_health(home)
            api = client.CoreV1Api(config.new_client_from_config(str(home / "pods" / "kubeconfig")))
            measured = [
                _one(installation, api, _another(source, Path(folder), step), step)
                for step in range(1, N_CHECKPOINTS + 1)
            ]
        finally:
            down(home)
    first, *warm = measured
    parts = {name: statistics.median(m[name] for m in warm) for name in warm[0]}
    print(  # noqa: T201
        json.dumps(
            {
                "benchmark": "latency",
                "unit": "s",
                "landing_to_first_pod_median": round(parts.pop("total"), 2),
                "first_after_start": round(first["total"], 2),
                "n": len(warm),
                "excluded": {"quiet_seconds": QUIET_SECONDS},
                "parts_median": {name: round(value, 2) for name, value in parts.items()},
            }
        )
    )


def _only_health(home: Path) -> None:
    """Selection would only add load: one evaluation per checkpoint."""
    path = home / "config.yaml"
    document = yaml.safe_load(path.read_text("utf-8"))
    document["training_runs"][0]["selection"] = None
    path.write_text(yaml.safe_dump(document), "utf-8")


def _another(source: Path, folder: Path, step: int) -> Path:
    """A copy with one weight changed: the same content would be the same run, with nothing left for a pod to do."""
    copy = Path(shutil.copytree(source, folder / f"source-{step}"))
    data = bytearray((copy / "model.safetensors").read_bytes())
    data[-4] ^= step
    (copy / "model.safetensors").write_bytes(bytes(data))
    return copy


def _one(installation: Installation, api: client.CoreV1Api, source: Path, step: int) -> dict[str, float]:
    """Seconds of each part for one landing; `total` is without the quiet period."""
    installation.land(step, source)
    landed = time.time()
    run_id = installation.wait(lambda: _run_of(installation, step), f"DAG run of step {step}", 120)
    started = time.time()
    running = installation.wait(lambda: _running_pod(api), "running pod", 120)
    tasks = {t["task_id"]: t for t in installation.airflow.task_instances("evaluate_health", run_id)}
    done = sum(state == "success" for state in installation.airflow.dag_runs("evaluate_health").values())
    installation.wait(lambda: installation.finished("evaluate_health", max(step, done)), f"evaluation of step {step}")
    total = running - landed - QUIET_SECONDS
    parts = {"total": total, "watch_and_dispatch": started - landed - QUIET_SECONDS}
    previous_end = started
    for task_id in STEPS[:-1]:
        end = _epoch(tasks[task_id]["end_date"])
        parts[task_id] = end - previous_end
        previous_end = end
    parts["pod_start"] = running - previous_end
    return parts


def _run_of(installation: Installation, step: int) -> str | None:
    runs = installation.airflow.dag_runs("evaluate_health")
    return next((run_id for run_id in runs if f"__{step}__" in run_id), None)


def _running_pod(api: client.CoreV1Api) -> float | None:
    """The time of the first look at which a pod's process runs."""
    for pod in api.list_namespaced_pod(NAMESPACE).items:
        if pod.status.phase == "Running":
            return time.time()
    return None


def _epoch(text: Any) -> float:
    return datetime.fromisoformat(str(text).replace("Z", "+00:00")).timestamp()


if __name__ == "__main__":
    main()
