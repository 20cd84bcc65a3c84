"""What a person says of a block, and what follows: the baseline, the gate, the reports of runs that were in doubt."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from eval_tasks.determinism.baselines import proposal
from eval_tasks.errors import UserError
from eval_tasks.publish import publish
from eval_tasks.records import Block, Run
from eval_tasks.records.determinism import BlockOutcome

if TYPE_CHECKING:
    from collections.abc import Collection

    from eval_tasks.store import Store

_log = logging.getLogger(__name__)


def explain(store: Store, block_id: str, *, by: str, reason: str, outcome: BlockOutcome, now: str) -> Block:
    """Lift a block, and do what the outcome says. Of two people one wins, and the other is told by a UserError.

    ``baseline kept``: the cause was found, the old rows stand; a new fingerprint is refused. ``baseline adopted``: the
    run that showed the change is the baseline from now on. ``runs suspect``: the old rows stand, and what ran since the
    last good night stays suspect until it is cleared.
    """
    before = store.catalog.block(block_id)
    in_doubt = [run.run_id for run in store.catalog.suspects(before)]
    block = store.catalog.explain_block(before.block_id, by, reason, now, outcome)
    if outcome == "baseline adopted":
        _decide(store, block, "adopted", now)
    elif block.kind == "new_environment":
        _decide(store, block, "refused", now)
    republish(store, in_doubt, now)
    return block


def _decide(store: Store, block: Block, status: str, now: str) -> None:
    run = store.catalog.run(block.run_id)
    effect = f"{block.reason}; {block.explanation}"
    adopted = proposal(
        store, run, "adopted" if status == "adopted" else "refused", by=block.explained_by or "", effect=effect, now=now
    )
    _log.info("baseline of %s on suite %s is %s: run %s", block.fingerprint, block.suite_id, status, adopted.run_id)


def clear(store: Store, block_id: str, run_ids: Collection[str], *, by: str, reason: str, now: str) -> list[str]:
    """Say that suspect runs' numbers stand: those named, or all of the block's; gives which. Their reports follow."""
    block = store.catalog.block(block_id)
    suspects = {run.run_id for run in store.catalog.suspects(block)}
    wanted = {store.catalog.run(run_id).run_id for run_id in run_ids} or suspects
    if strangers := sorted(wanted - suspects):
        raise UserError(f"run {strangers[0]} is not suspect because of block {block.block_id}; see: blocks show")
    store.catalog.clear_runs(block.block_id, wanted, by, reason, now)
    republish(store, sorted(wanted), now)
    return sorted(wanted)


def mark_suspects(store: Store, block: Block, now: str) -> list[Run]:
    """Publish anew the reports of the runs that a block puts in doubt, so that they say so; gives those runs."""
    suspects = store.catalog.suspects(block)
    republish(store, [run.run_id for run in suspects], now)
    return suspects


def republish(store: Store, run_ids: Collection[str], now: str) -> None:
    """New reports of those runs that have reports, each with the comparison and the notes that its last one shows."""
    for run_id in run_ids:
        last = next((row for row in store.catalog.reports(run_id) if row.format == "json"), None)
        if last is None:
            continue
        shown = store.blobs.get_json(last.blob_digest)
        publish(
            store,
            run_id=run_id,
            comparison_id=shown["identity"]["comparison_id"],
            notes="\n".join(shown["notes"]),
            now=now,
        )
