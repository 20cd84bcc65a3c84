"""Which rows stand for a fingerprint on the fixed suite: found, proposed, adopted or refused. Decisions are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from eval_tasks.errors import UserError, did_you_mean
from eval_tasks.records import Baseline, Run
from eval_tasks.records.determinism import BaselineStatus

if TYPE_CHECKING:
    from eval_tasks.store import Store

BY_ITSELF = "by itself"


def standing(store: Store, run: Run) -> Baseline | None:
    """The adopted baseline of the run's fingerprint, for its suite and checkpoint."""
    found = store.catalog.baseline(run.env_fingerprint or "", run.request.suite_id)
    fits = found is not None and found.status == "adopted" and found.checkpoint_id == run.request.checkpoint_id
    return found if fits else None


def last_adopted(store: Store, run: Run) -> Baseline | None:
    """What a new fingerprint is measured against: the last baseline of its own environment, else the last of all."""
    known = [
        baseline
        for baseline in store.catalog.baselines(run.request.suite_id, "adopted")
        if baseline.checkpoint_id == run.request.checkpoint_id and baseline.env_fingerprint != run.env_fingerprint
    ]
    own = [baseline for baseline in known if baseline.environment == run.environment]
    return next(iter(own or known), None)


def proposal(store: Store, run: Run, status: BaselineStatus, *, by: str = "", effect: str = "", now: str) -> Baseline:
    """The run as its fingerprint's baseline; saved."""
    fingerprint, suite_id = run.env_fingerprint or "", run.request.suite_id
    before = store.catalog.baseline(fingerprint, suite_id)
    baseline = Baseline(
        env_fingerprint=fingerprint,
        suite_id=suite_id,
        run_id=run.run_id,
        status=status,
        recorded_at=now,
        rows_digest=store.responses.run_rows_digest(run.run_id),
        decided_by=by,
        effect=effect,
        environment=run.environment,
        checkpoint_id=run.request.checkpoint_id,
        harness_version=run.request.harness_version,
        replaces=before.run_id if before is not None and before.run_id != run.run_id else "",
    )
    store.catalog.save_baseline(baseline)
    return baseline


def adopt(store: Store, reference: str, *, by: str, reason: str, now: str, suite_id: str | None = None) -> Baseline:
    """Adopt the candidate, or the refused baseline, of a fingerprint (or of an environment of that name).

    Raises UserError without a name and a reason, for a block that still asks about it, or when there is nothing to
    adopt.
    """
    if not by.strip() or not reason.strip():
        raise UserError("adopting a baseline needs a name and a reason: both are kept")
    fingerprint = store.catalog.find_environment(reference).env_fingerprint
    waiting = [
        baseline
        for baseline in store.catalog.baselines(suite_id)
        if baseline.env_fingerprint == fingerprint and baseline.status != "adopted"
    ]
    if len(waiting) != 1:
        raise UserError(_choose(store, fingerprint, waiting))
    asked = [b for b in store.catalog.open_blocks(fingerprint) if b.kind == "new_environment"]
    if asked:
        raise UserError(
            f"block {asked[0].block_id} asks for that decision; answer it: python -m eval_tasks blocks explain "
            f"{asked[0].block_id} --outcome 'baseline adopted' --reason ..."
        )
    adopted = replace(
        waiting[0], status="adopted", recorded_at=now, decided_by=by, effect=f"{waiting[0].effect}; {reason}"
    )
    store.catalog.save_baseline(adopted)
    return adopted


def _choose(store: Store, fingerprint: str, waiting: Sequence[Baseline]) -> str:
    if waiting:
        suites = ", ".join(baseline.suite_id for baseline in waiting)
        return f"fingerprint {fingerprint} has {len(waiting)} candidates, on suites {suites}; name one with --suite-id"
    known = [b.env_fingerprint for b in store.catalog.baselines() if b.status != "adopted"]
    return f"fingerprint {fingerprint} has no candidate to adopt; {did_you_mean(fingerprint, known)}"
