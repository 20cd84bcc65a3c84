"""`make chaos`: checkpoints land on a live installation while parts of it are killed, stalled and starved of disk.

The seed fixes which faults come, in which order and how far apart; what they hit is the live system's. At the end the
ledger, the DAG runs, the result rows, the numbers and the alerts are held against what an undisturbed process gives.
One JSON line counts what was done; a claim that does not hold ends the program with its name.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from checkpoint_eval.embedded import down
from tests.alerts.receivers import Webhook
from tests.chaos import accounts
from tests.chaos.faults import KINDS, Fault, SmallDisk, inject, schedule
from tests.end_to_end.installation import TRAINING_RUN, Installation, start
from tests.end_to_end.undisturbed import Outcome, undisturbed
from tests.planned import write_checkpoint

EVERY = 4
_SETTLES_SECONDS = 1800.0
_TELLS_SECONDS = 180.0


@dataclass
class Chaos:
    """A live installation, what lands on it and what is done to it. `told` keeps what happened, by the second."""

    installation: Installation
    checkpoints: list[Path]
    broken_step: int
    faults: list[Fault]
    landing_seconds: float
    injected: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    began: float = field(default_factory=time.monotonic)

    def tell(self, text: str) -> None:
        """One line of what happens, on standard error: standard output is the JSON line's."""
        sys.stderr.write(f"{time.monotonic() - self.began:7.1f} s  {text}\n")

    def live(self) -> None:
        """Land and disturb by turns until both lists are at their end."""
        steps = [*range(1, len(self.checkpoints) + 1)]
        next_landing = next_fault = time.monotonic()
        faults = list(self.faults)
        while steps or faults:
            now = time.monotonic()
            if steps and now >= next_landing:
                self._land(steps.pop(0))
                next_landing = now + self.landing_seconds
            if faults and now >= next_fault:
                fault = faults.pop(0)
                hit = inject(fault, self.installation)
                (self.injected if hit else self.missed)[fault.kind] += 1
                self.tell(f"{fault.kind}{'' if hit else ' (nothing to hit)'}")
                next_fault = time.monotonic() + (faults[0].pause_seconds if faults else 0.0)
            time.sleep(0.2)

    def settle(self) -> bool:
        """Wait until every evaluation has ended; False when it takes too long."""
        n = len(self.checkpoints) - 1
        wanted = {"evaluate_health": n, "evaluate_selection": n // EVERY}
        deadline = time.monotonic() + _SETTLES_SECONDS
        while time.monotonic() < deadline:
            ended = {
                dag: sum(state in ("success", "failed") for state in states.values())
                for dag, states in self._dag_runs().items()
            }
            if all(ended.get(dag, 0) >= count for dag, count in wanted.items()):
                return True
            time.sleep(5)
        return False

    def problems(self, expected: dict[int, Outcome], receiver: Webhook) -> list[str]:
        """Every claim that does not hold."""
        store = self.installation.store
        n = len(self.checkpoints) - 1
        wanted = {"evaluate_health": n, "evaluate_selection": n // EVERY}
        wrong = accounts.of_dag_runs(self._dag_runs(), wanted)
        wrong += accounts.of_ledger(store, TRAINING_RUN, expected, [self.broken_step])
        wrong += accounts.of_results(store, TRAINING_RUN, expected)
        deadline = time.monotonic() + _TELLS_SECONDS
        while (
            untold := accounts.of_alerts(store, [self.broken_step], texts(receiver))
        ) and time.monotonic() < deadline:
            time.sleep(3)
        wrong += untold
        if left := self.installation.pods():
            wrong.append(f"{len(left)} pods are still running")
        return wrong

    def _land(self, step: int) -> None:
        folder = self.installation.land(step, self.checkpoints[step - 1])
        if step == self.broken_step:
            with (folder / "model.safetensors").open("ab") as weights:
                weights.write(b"more than the header says")
        self.tell(f"step {step} landed{', broken' if step == self.broken_step else ''}")

    def _dag_runs(self) -> dict[str, dict[str, str]]:
        while True:
            try:
                return {
                    dag: self.installation.airflow.dag_runs(dag) for dag in ("evaluate_health", "evaluate_selection")
                }
            except (OSError, ValueError):  # the API server is coming back
                time.sleep(2)


def texts(receiver: Webhook) -> list[str]:
    """The messages that a webhook was sent."""
    return [str(payload["message"]) for payload in receiver.received]


def chaos(home: Path, *, seed: int, n_checkpoints: int, n_faults: int, landing_seconds: float) -> dict[str, object]:
    """One run in `home`; the figures. Ends the program with the first claims that do not hold."""
    sources = home / "sources"
    broken_step = n_checkpoints // 2 + 1
    checkpoints = [write_checkpoint(sources / f"model-{k}", seed=1000 + k) for k in range(n_checkpoints + 1)]
    live = home / "live"
    with Webhook() as receiver, SmallDisk(live / "store") as small:
        kinds = KINDS if small else tuple(kind for kind in KINDS if kind != "full-disk")
        alerts = {
            "alerts": {"channels": [{"name": "hook", "url": receiver.url}], "poll_seconds": 5, "retry_seconds": 5}
        }
        try:
            installation = start(live, standalone=False, every=EVERY, max_tokens=60, further=alerts)
            run = Chaos(
                installation=installation,
                checkpoints=checkpoints,
                broken_step=broken_step,
                faults=schedule(seed, n_faults, kinds),
                landing_seconds=landing_seconds,
            )
            run.live()
            run.tell("no more faults; waiting for what is under way")
            settled = run.settle()
            sound = [step for step in range(1, len(checkpoints) + 1) if step != broken_step]
            expected = {
                step: undisturbed(checkpoints[step - 1], home / f"alone-{step}", max_tokens=60) for step in sound
            }
            wrong = run.problems(expected, receiver)
            if not settled:
                wrong.insert(0, f"not all evaluations ended within {_SETTLES_SECONDS:.0f} s of the last fault")
            line = {
                "bench": "chaos",
                "seed": seed,
                "checkpoints": n_checkpoints,
                "faults": dict(sorted(run.injected.items())),
                "n_faults": run.injected.total(),
                "nothing_to_hit": dict(sorted(run.missed.items())),
                "not_available": sorted(set(KINDS) - set(kinds)),
                "runs": len(installation.store.catalog.runs(training_run=TRAINING_RUN)),
                "alerts": len(installation.store.catalog.alerts()),
                "told_again": accounts.told_again(installation.store, texts(receiver)),
                "seconds": round(time.monotonic() - run.began, 1),
                "wrong": wrong,
            }
            installation.store.close()
        finally:
            down(live)
    return line


def main() -> int:
    """Run it; 0 when every claim holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoints", type=int, default=20)
    parser.add_argument("--faults", type=int, default=40)
    parser.add_argument("--landing-seconds", type=float, default=15.0)
    parser.add_argument("--home", type=Path, help="keep everything there, logs included; otherwise it is removed")
    options = parser.parse_args()
    home: Path = options.home or Path(tempfile.mkdtemp(prefix="checkpoint-eval-chaos-"))
    home.mkdir(parents=True, exist_ok=True)
    line = chaos(
        home,
        seed=options.seed,
        n_checkpoints=options.checkpoints,
        n_faults=options.faults,
        landing_seconds=options.landing_seconds,
    )
    sys.stdout.write(json.dumps(line) + "\n")
    if line["wrong"]:
        sys.stderr.write(f"does not hold; logs are in {home}\n")
        return 1
    if options.home is None:
        shutil.rmtree(home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
