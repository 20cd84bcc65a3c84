"""What is known of an instrument over time: nights, baselines, blocks, items computed twice, and how far it moves.

Times are UTC, ISO 8601. Everything here is about an env_fingerprint; an environment's name is only how people call it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from eval_tasks.records.rerun import RerunDifference

DETERMINISM_RUNS = "determinism/"
"""Before the environment's name, in place of a training run: no series or baseline of a training run finds it."""

BaselineStatus = Literal["candidate", "adopted", "refused"]
BlockKind = Literal["rows_changed", "new_environment", "engine_variance", "sentinels", "computed_twice"]
BlockOutcome = Literal["baseline kept", "baseline adopted", "runs suspect"]
NightStatus = Literal["good", "adopted", "candidate", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDifference:
    """One field of one item in two runs, as text that shows every bit; '(no row)' where a run has none.

    `field` is a name of a response (``logprobs[0][2]``), or ``score METRIC``.
    """

    benchmark: str
    item_id: str
    field: str
    a: str
    b: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsComparison:
    """Two runs of the same request, bit for bit. `first`: the first differing items, in suite and item order."""

    run_a: str
    run_b: str
    n_items: int
    n_differing: int
    first: tuple[RowDifference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The run whose rows stand for an env_fingerprint on a fixed suite. `effect`: what was measured of the change.

    `replaces`: the run that stood there before.
    """

    env_fingerprint: str
    suite_id: str
    run_id: str
    status: BaselineStatus
    recorded_at: str
    rows_digest: str = ""
    decided_by: str = ""
    effect: str = ""
    environment: str = ""
    checkpoint_id: str = ""
    harness_version: str = ""
    replaces: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clearing:
    """A person's word that a suspect run's numbers stand."""

    run_id: str
    by: str
    reason: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Evaluation is held on an env_fingerprint until a person explains why its rows changed.

    `run_id`: the run that showed it. `suite_id`: the fixed suite, where a candidate of it may be adopted. `nodes`:
    machines that took part, where they are known. `good_until`: when rows were last known to be good, '' for never;
    what ran on the fingerprint since then is suspect while the block is open, and after it if the `outcome` says so.
    """

    block_id: str
    fingerprint: str
    reason: str
    opened_at: str
    explained_by: str | None = None
    explanation: str | None = None
    explained_at: str | None = None
    kind: BlockKind = "rows_changed"
    environment: str = ""
    run_id: str = ""
    suite_id: str = ""
    nodes: tuple[str, ...] = ()
    good_until: str = ""
    first: tuple[RowDifference, ...] = ()
    outcome: BlockOutcome | None = None
    cleared: tuple[Clearing, ...] = ()

    @property
    def may_adopt(self) -> bool:
        """Whether there is a candidate whose rows can take the baseline's place."""
        return self.kind in ("rows_changed", "new_environment")

    def makes_suspect(self, run_id: str, env_fingerprint: str | None, closed_at: str | None) -> bool:
        """Whether the numbers of such a run are in doubt because of this block."""
        if env_fingerprint != self.fingerprint or closed_at is None:
            return False
        # Its own rows show what is wrong, whatever a night said since.
        shown_by_it = self.kind == "computed_twice" and run_id == self.run_id
        if not shown_by_it and not _before(self.good_until, closed_at):
            return False
        if self.explained_at is not None and (self.outcome != "runs suspect" or _before(self.explained_at, closed_at)):
            return False
        return all(clearing.run_id != run_id for clearing in self.cleared)


def _before(a: str, b: str) -> bool:
    """Whether moment `a`, '' for the beginning of time, is before `b`: texts of other precision do not sort."""
    return not a or datetime.fromisoformat(a) < datetime.fromisoformat(b)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentinelCheck:
    """One promise of the engine on the sentinels, and the items that broke it."""

    name: str
    passed: bool
    n_items: int
    differing: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SentinelReport:
    """The engine's promises, tried in the pod of an environment beside run `run_id`."""

    run_id: str
    env_fingerprint: str
    node: str
    checks: tuple[SentinelCheck, ...]

    @property
    def broken(self) -> tuple[SentinelCheck, ...]:
        """The promises that did not hold."""
        return tuple(check for check in self.checks if not check.passed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedTwice:
    """Items of a run that a second pod computed too: how many, how many differ, and where both were computed."""

    run_id: str
    n_items: int
    n_differing: int
    n_elsewhere: int
    nodes: tuple[str, ...] = ()
    first: tuple[RowDifference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """The fixed suite on the fixed checkpoint in one environment, once. `findings`: sentences, the worst first.

    `baseline_run_id`: whose rows `against_baseline` compares with. `effect`: scores less those of the last adopted
    baseline, of a new fingerprint. `perturbed`: rows of another batch plan against this night's, which is the engine's
    variance; None where the two landed on different fingerprints. `sentinels`: broken promises and all of them.
    """

    night: str
    environment: str
    env_fingerprint: str
    suite_id: str
    checkpoint_id: str
    status: NightStatus
    run_id: str
    perturbed_run_id: str
    recorded_at: str
    good_at: str
    n_items: int
    device_seconds: float
    baseline_run_id: str = ""
    against_baseline: RowsComparison | None = None
    effect: tuple[RerunDifference, ...] = ()
    perturbed: RowsComparison | None = None
    sentinels: tuple[int, int] | None = None
    block_ids: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
