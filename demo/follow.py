"""Watch an embedded installation evaluate checkpoints, and tell what happens, line by line. For demo.py and real.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from checkpoint_eval.embedded import EmbeddedError, Endpoint
from eval_tasks.errors import EvalError
from eval_tasks.publish import build_view
from eval_tasks.records import Run
from eval_tasks.report import terminal_text
from eval_tasks.report.numbers import amount, interval
from eval_tasks.settings import Settings
from eval_tasks.store import Store, open_store

DAGS = ("evaluate_health", "evaluate_selection")
# A proxy of the caller's environment is none of loopback's business.
_loopback = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class EvaluationFailedError(RuntimeError):
    """A DAG run failed, or the evaluations took too long."""


def own_home() -> None:
    """Forget the caller's CHECKPOINT_EVAL_ variables: all that is made here lies in one folder, in no other store."""
    for name in [name for name in os.environ if name.startswith("CHECKPOINT_EVAL_")]:
        del os.environ[name]


def ended(run: Callable[[], int]) -> int:
    """The exit code of `run`; what a person is to know of, in a line instead of a traceback."""
    try:
        return run()
    except (EvaluationFailedError, EmbeddedError, EvalError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; what was started stays up until `make down`", file=sys.stderr)
        return 130


class AirflowClient:
    """The few calls of Airflow's public API that a follower, or a test in a person's place, needs."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._token = ""

    def _call(self, path: str, body: object = None, method: str | None = None) -> Any:
        request = urllib.request.Request(  # noqa: S310
            self._endpoint.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"},
        )
        with _loopback.open(request, timeout=30) as answer:
            return json.load(answer)

    def _signed_in(self, path: str, body: object = None, method: str | None = None) -> Any:
        if not self._token:
            credentials = {"username": self._endpoint.user, "password": self._endpoint.password}
            self._token = self._call("/auth/token", credentials)["access_token"]
        return self._call(path, body, method)

    def trigger(self, dag_id: str, conf: dict[str, Any]) -> str:
        """Start a run as the form does; its run id."""
        body = {"logical_date": None, "conf": conf}
        run_id: str = self._signed_in(f"/api/v2/dags/{dag_id}/dagRuns", body)["dag_run_id"]
        return run_id

    def backfill(self, dag_id: str, since: str, until: str, conf: dict[str, Any], reprocess: str = "completed") -> int:
        """Start a backfill as the form does; its id."""
        window = {"from_date": since, "to_date": until, "dag_run_conf": conf, "reprocess_behavior": reprocess}
        backfill_id: int = self._signed_in("/api/v2/backfills", {"dag_id": dag_id, **window})["id"]
        return backfill_id

    def backfill_ended(self, backfill_id: int) -> bool:
        """Whether all runs of a backfill have ended, well or not."""
        return bool(self._signed_in(f"/api/v2/backfills/{backfill_id}")["completed_at"])

    def answer(self, dag_id: str, run_id: str, task_id: str, option: str, **form: Any) -> None:
        """Answer a task that waits for a person; `form` are the fields that it asks for."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances/{task_id}/-1/hitlDetails"
        self._signed_in(path, {"chosen_options": [option], "params_input": form}, "PATCH")

    def answered(self, dag_id: str, run_id: str, task_id: str) -> bool:
        """Whether a task that waits for a person has an answer that it did not take up yet."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances/{task_id}/-1/hitlDetails"
        return bool(self._signed_in(path)["response_received"])

    def task_instances(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """The task instances of one run."""
        instances: list[dict[str, Any]] = self._signed_in(
            f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances?limit=1000"
        )["task_instances"]
        return instances

    def dag_runs(self, dag_id: str) -> dict[str, str]:
        """State of every run of a DAG, by run id."""
        runs = self._signed_in(f"/api/v2/dags/{dag_id}/dagRuns?limit=1000")["dag_runs"]
        return {run["dag_run_id"]: run["state"] for run in runs}


@dataclass
class Follower:
    """Prints each new landing, run and verdict once. `tell` prints one line."""

    home: Path
    endpoint: Endpoint
    training_run: str
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.store: Store = open_store(Settings(home=self.home))
        self._airflow = AirflowClient(self.endpoint)
        self._told: set[str] = set()

    def say(self, text: str) -> None:
        """One line with the seconds since the start."""
        print(f"[{time.monotonic() - self.started:5.0f} s] {text}", flush=True)

    def tell(self, key: str, text: str) -> None:
        """`say`, once for each key."""
        if key not in self._told:
            self._told.add(key)
            self.say(text)

    def follow(
        self, wanted: dict[str, int], *, timeout_seconds: float, check: Callable[[], None] = lambda: None
    ) -> None:
        """Until `wanted[dag_id]` runs of each DAG have succeeded. Raises EvaluationFailedError on a failed one.

        `check` is called at every look, and may raise.
        """
        deadline = time.monotonic() + timeout_seconds
        while True:
            check()
            self._tell_landings()
            self._tell_runs()
            states = self._states()
            for dag_id, runs in states.items():
                for run_id, state in runs.items():
                    if state == "failed":
                        raise EvaluationFailedError(
                            f"{dag_id} run {run_id} failed: open it in {self.endpoint.url}/dags/{dag_id}/runs/{run_id}"
                        )
            done = {dag_id: sum(state == "success" for state in runs.values()) for dag_id, runs in states.items()}
            if all(done.get(dag_id, 0) >= n for dag_id, n in wanted.items()):
                self._tell_runs()
                return
            if time.monotonic() > deadline:
                raise EvaluationFailedError(
                    f"not finished after {timeout_seconds:.0f} s: {done} of {wanted}; logs are in {self.home / 'logs'}"
                )
            time.sleep(2)

    def _states(self) -> dict[str, dict[str, str]]:
        try:
            return {dag_id: self._airflow.dag_runs(dag_id) for dag_id in DAGS}
        except (urllib.error.URLError, OSError):
            return {}

    def _tell_landings(self) -> None:
        for row in self.store.catalog.landings(training_run=self.training_run):
            step = row.landing.step
            if row.state == "dispatched":
                tiers = " and ".join(run.split("__")[0] for run in row.dag_runs)
                self.tell(f"{row.landing.landing_id}", f"step {step} has landed: {tiers} evaluation started")
            elif row.state == "broken":
                self.tell(f"{row.landing.landing_id}!", f"step {step} is broken: {row.reason}")

    def _tell_runs(self) -> None:
        for run in self.store.catalog.runs(training_run=self.training_run):
            counts = self.store.queue.counts(run.run_id)
            done, total = counts.get("done", 0), sum(counts.values())
            name = f"step {run.step} {run.tier}"
            if run.status == "running" and total:
                tenth = 4 * done // total
                self.tell(f"{run.run_id} {tenth}", f"{name}: {done} of {total} items")
            if run.status == "closed" and self.store.catalog.reports(run.run_id):
                self.tell(f"{run.run_id} closed", f"{name}: {self._scores(run)}")
                for comparison in self.store.catalog.comparisons(run.run_id):
                    if comparison.run_a == run.run_id and comparison.verdict:
                        words = f"{name} against {comparison.label_b}: {comparison.verdict}"
                        self.tell(comparison.comparison_id, words)

    def _scores(self, run: Run) -> str:
        return "; ".join(
            f"{m.benchmark} {m.metric} {amount(m.score, m.unit)} {interval(m.ci95, m.unit)}"
            + (" QUARANTINED" if m.quarantined else "")
            for m in self.store.catalog.measurements(run.run_id)
            if m.primary
        )

    def final_report(self, tier: str) -> tuple[str, Path]:
        """Terminal report and HTML path of the last run of a tier, with its comparison."""
        last = max(
            self.store.catalog.runs(training_run=self.training_run, tier=tier, status="closed"),
            key=lambda run: run.step,
        )
        comparisons = [c for c in self.store.catalog.comparisons(last.run_id) if c.run_a == last.run_id]
        comparison_id = comparisons[-1].comparison_id if comparisons else None
        view = build_view(self.store, run_id=last.run_id, comparison_id=comparison_id)
        html = next(r for r in self.store.catalog.reports(last.run_id) if r.format == "html")
        path = self.home / f"report-{tier}-step-{last.step}.html"
        path.write_bytes(self.store.blobs.get(html.blob_digest))
        return terminal_text(view, width=110), path
