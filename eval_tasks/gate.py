"""Environment name -> may evaluation start there? Reads blocks and runs from the catalog; waits for nothing."""

from __future__ import annotations

from dataclasses import dataclass

from eval_tasks.store import Store

_RECENT_RUNS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """`open` is False while a block stands on a fingerprint that this environment has reported."""

    open: bool
    reason: str


def gate(store: Store, *, environment: str) -> GateResult:
    """Whether runs may start in `environment`.

    A block stands on an env_fingerprint. An environment's fingerprints are those its recent runs reported; one that has
    reported none yet is held by any open block, since it may be the blocked one under a new name.
    """
    blocks = store.catalog.open_blocks()
    if not blocks:
        return GateResult(open=True, reason="no open block")
    # All runs, since a busy environment would push another's out of any common limit; only read while a block stands.
    runs = store.catalog.runs(judging=None)
    reported = [r.env_fingerprint for r in runs if r.environment == environment and r.env_fingerprint]
    fingerprints = set(reported[:_RECENT_RUNS])
    standing = [block for block in blocks if not fingerprints or block.fingerprint in fingerprints]
    if not standing:
        return GateResult(open=True, reason=f"{len(blocks)} open block(s), none on environment {environment!r}")
    first = standing[0]
    return GateResult(
        open=False,
        reason=f"block {first.block_id} on {first.fingerprint[:12]}: {first.reason}; explain it to let runs go on",
    )
