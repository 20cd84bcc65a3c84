"""Environment name -> may evaluation start there? Reads blocks and keeps who waits in the catalog; waits for nothing.

Runs that wait hold a ticket each, and are let go in the order of their places once the last block is explained. A
ticket whose run has not asked for a while is no reason to wait any more: that run was ended.
"""

from __future__ import annotations

from dataclasses import dataclass

from eval_tasks.records import Block
from eval_tasks.store import Store
from eval_tasks.store.moments import Moment, epoch_seconds

PATIENCE_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """`open` is False while a block stands on a fingerprint that this environment has reported."""

    open: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A run that asks. `ticket` names it, `place` is text by which waiting runs are ordered, `now` the present time."""

    ticket: str
    place: str
    now: Moment


def gate(store: Store, *, environment: str, waiting: Waiting | None = None) -> GateResult:
    """Whether runs may start in `environment`; with `waiting`, whether it is this run's turn.

    A block stands on an env_fingerprint. An environment's fingerprints are those its pods reported; one that has
    reported none yet is held by any open block, since it may be the blocked one under a new name. An environment whose
    present fingerprint a person has refused evaluates nothing.
    """
    held = _held(store, environment)
    if waiting is None:
        return held
    if held.open:
        held = _turn(store, environment, waiting)
    if held.open:
        store.catalog.return_ticket(waiting.ticket)
    else:
        store.catalog.hold_ticket(waiting.ticket, environment, waiting.place, waiting.now)
    return held


def _held(store: Store, environment: str) -> GateResult:
    blocks = store.catalog.open_blocks()
    fingerprints = store.catalog.fingerprints_of(environment)
    refused = [b for b in store.catalog.baselines(status="refused") if b.env_fingerprint in fingerprints[:1]]
    if refused:
        return GateResult(
            open=False,
            reason=f"{refused[0].decided_by} refused fingerprint {fingerprints[0][:12]}, which {environment!r} has; "
            "change its machines back, or adopt it: python -m eval_tasks baselines adopt",
        )
    if not blocks:
        return GateResult(open=True, reason="no open block")
    standing = [block for block in blocks if not fingerprints or block.fingerprint in fingerprints]
    if not standing:
        return GateResult(open=True, reason=f"{len(blocks)} open block(s), none on environment {environment!r}")
    return GateResult(open=False, reason=_holding(standing[0]))


def _holding(block: Block) -> str:
    return f"block {block.block_id} on {block.fingerprint[:12]}: {block.reason}; explain it to let runs go on"


def _turn(store: Store, environment: str, waiting: Waiting) -> GateResult:
    """Open unless a run with an earlier place still waits."""
    now = epoch_seconds(waiting.now)
    lifted = [epoch_seconds(b.explained_at) for b in store.catalog.blocks() if b.explained_at is not None]
    # Whoever waited through a long night of the triggerer's has its turn too, if it asks soon after.
    just_lifted = bool(lifted) and now - max(lifted) < PATIENCE_SECONDS
    for place, ticket, seen in store.catalog.tickets(environment):
        if (place, ticket) >= (waiting.place, waiting.ticket):
            break
        if just_lifted or now - seen < PATIENCE_SECONDS:
            return GateResult(open=False, reason=f"no open block; {ticket} was here before and goes first")
    return GateResult(open=True, reason="no open block")
