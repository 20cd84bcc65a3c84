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
from follow import EvaluationFailedError, Follower, ended, own_home

from checkpoint_eval.embedded import Endpoint, down, up
from eval_tasks.errors import UserError
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
    if home.exists() and any(home.iterdir()) and not (home / "config.yaml").exists():
        raise UserError(f"{home} would be made anew, and holds something else than a demo; give another --home")
    own_home()
    down(home)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
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

    def training_goes_on() -> None:
        if training.poll():
            raise EvaluationFailedError(f"the training job ended with {training.returncode}: read {training_log(home)}")

    wanted = {"evaluate_health": N_CHECKPOINTS, "evaluate_selection": 1}
    try:
        follower.follow(wanted, timeout_seconds=options.timeout, check=training_goes_on)
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
    """The training job, in the background; its log lies beside the others."""
    with training_log(home).open("wb") as log:
        return subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("train.py")), "--out", str(home / "checkpoints")],
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )


def training_log(home: Path) -> Path:
    """What the training job printed."""
    return home / "logs" / "training.log"


def sign_in(endpoint: Endpoint) -> str:
    """Where the UI is and who signs in."""
    return f"   Airflow UI   {endpoint.url}   user {endpoint.user}   password {endpoint.password}"


if __name__ == "__main__":
    sys.exit(ended(main))
