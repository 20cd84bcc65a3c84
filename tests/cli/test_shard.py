"""A pod is a process: what ends it keeps what it finished, and who goes on gives the rows of an undisturbed run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from eval_tasks.records import Plan
from eval_tasks.run import run_shard
from eval_tasks.settings import Settings
from eval_tasks.store import Store, open_store
from tests import planned as planned_module
from tests.planned import planned, register, uri_of, write_checkpoint

REPOSITORY = Path(__file__).parents[2]
N_ITEMS = 96


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory):
    """(home, plan to be disturbed by SIGTERM, plan to be killed, digest of an undisturbed run's generated rows)."""
    folder = tmp_path_factory.mktemp("evaluation")
    checkpoint = write_checkpoint(folder / "step-1")
    with pytest.MonkeyPatch.context() as patch, open_store(Settings(home=folder / "home")) as store:
        for name, n in (("N_CHOICE", 1), ("N_TEXT", 1), ("N_GENERATED", N_ITEMS)):
            patch.setattr(planned_module, name, n)
        register(store, folder / "benchmarks", max_tokens=60)
        plans = [planned(store, checkpoint, shard_cost_tokens=10**9, repeat=n) for n in range(3)]
        for made in plans:
            arguments = {"plan_uri": uri_of(store, made), "owner": "undisturbed", "cache_dir": folder / "cache"}
            run_shard(store, shard=0, **arguments)
        run_shard(store, shard=1, plan_uri=uri_of(store, plans[0]), owner="undisturbed", cache_dir=folder / "cache")
        digest = _closed(store, plans[0])
    (folder / "config.yaml").write_text(yaml.safe_dump({"limits": {"lease_seconds": 1.0}}))
    return folder, plans[1], plans[2], digest


def _closed(store: Store, made: Plan) -> str:
    store.responses.close(made.run_id, store.queue.results(made.run_id))
    return store.responses.run_rows_digest(made.run_id)


def _pod(folder: Path, uri: str) -> subprocess.Popen[str]:
    places = {"CHECKPOINT_EVAL_HOME": folder / "home", "CHECKPOINT_EVAL_CONFIG": folder / "config.yaml"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CHECKPOINT_EVAL_")}
    return subprocess.Popen(
        [sys.executable, "-m", "eval_tasks", "run-shard", "--plan", uri, "--shard", "1", "--json"],
        cwd=REPOSITORY,
        env={**kept, **{name: str(value) for name, value in places.items()}, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(("end", "code"), [(signal.SIGTERM, 4), (signal.SIGKILL, -signal.SIGKILL)])
def test_resumed_after_an_end_in_the_midst_is_undisturbed(evaluation, end: signal.Signals, code: int) -> None:
    folder, terminated, killed, undisturbed = evaluation
    made = terminated if end == signal.SIGTERM else killed
    with open_store(Settings(home=folder / "home")) as store:
        uri, before = uri_of(store, made), len(store.queue.results(made.run_id))
        pod = _pod(folder, uri)
        try:
            while pod.poll() is None and len(store.queue.results(made.run_id)) == before:
                time.sleep(0.02)
            pod.send_signal(end)
            _, said = pod.communicate(timeout=60)
        finally:
            pod.kill()
        assert pod.returncode == code, said
        kept = len(store.queue.results(made.run_id))
        assert before < kept < made.n_batches
        if end == signal.SIGTERM:
            assert "items/s" in said  # killed, it may die between the batch and its line
            assert "error: stopped with " in said and "finished ones are kept" in said
            row = store.catalog.shards(made.run_id)[1]
            assert (row.status, row.n_done) == ("failed", 32 * (kept - before))
        resumed = _pod(folder, uri)
        try:
            out, said = resumed.communicate(timeout=120)
        finally:
            resumed.kill()
        assert resumed.returncode == 0, said
        assert json.loads(out)["n_computed"] == N_ITEMS - 32 * (kept - before)
        assert _closed(store, made) == undisturbed
