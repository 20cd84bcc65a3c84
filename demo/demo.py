"""`make demo`: train a tiny model, evaluate its checkpoints with real Airflow as they land, end in a verdict.

Everything lies in one folder (`--home`), which is made anew each time. The Airflow UI stays up until `make down`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import yaml
from follow import EvaluationFailedError, Follower

from checkpoint_eval.embedded import Endpoint, down, up
from eval_tasks.register import register_shipped
from eval_tasks.settings import Settings
from eval_tasks.store import open_store

N_CHECKPOINTS = 6
TRAINING_RUN = "demo"


def main() -> int:
    """Run the demo; 0 when it ended in a verdict."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--home", type=Path, default=Path(".demo"))
    parser.add_argument("--timeout", type=float, default=1500, help="seconds to wait for all evaluations")
    options = parser.parse_args()
    home: Path = options.home.resolve()
    down(home)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True, mode=0o700)
    write_config(home)
    print("1. Registering the demo's benchmarks, suites and decision rule (before anything runs)", flush=True)
    store = open_store(Settings(home=home))
    register_shipped(store, datetime.now(UTC).isoformat(timespec="seconds"))
    print("2. Starting Airflow and the local pod API (about a minute)", flush=True)
    endpoint = up(home)
    print(sign_in(endpoint), flush=True)
    print(f"3. Training a tiny model; its {N_CHECKPOINTS} checkpoints land in {home / 'checkpoints'}", flush=True)
    follower = Follower(home=home, endpoint=endpoint, training_run=TRAINING_RUN)
    training = start_training(home)
    try:
        follower.follow({"evaluate_health": N_CHECKPOINTS, "evaluate_selection": 1}, timeout_seconds=options.timeout)
    except EvaluationFailedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        training.terminate()
        training.wait()
    report, html = follower.final_report("selection")
    print(f"\n{report}\nHTML report  {html}\n{sign_in(endpoint)}\nIt stays up until `make down`.")
    return 0


def write_config(home: Path) -> None:
    """The configuration a user would write for this training run."""
    run = {
        "name": TRAINING_RUN,
        "uri": str(home / "checkpoints"),
        "quiet_seconds": 2,
        "health": {"suite": "demo-health", "baseline": "previous"},
        "selection": {"suite": "demo-selection", "every": N_CHECKPOINTS, "baseline": "first", "rule": "demo-rule"},
    }
    config = {"training_runs": [run], "poll_seconds": 2}
    (home / "checkpoints").mkdir(exist_ok=True)
    (home / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False), "utf-8")


def start_training(home: Path) -> subprocess.Popen[bytes]:
    """The training job, in the background at low priority; its log lies beside the others."""
    (home / "logs").mkdir(exist_ok=True)
    with (home / "logs" / "training.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("train.py")), "--out", str(home / "checkpoints")],
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )


def sign_in(endpoint: Endpoint) -> str:
    """Where the UI is and who signs in."""
    return f"   Airflow UI   {endpoint.url}   user {endpoint.user}   password {endpoint.password}"


if __name__ == "__main__":
    sys.exit(main())
