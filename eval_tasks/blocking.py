"""A difference that must not be -> an open block and one alert of it. Who finds it says what it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from eval_tasks.digests import digest_parts, short_id
from eval_tasks.records import Alert, Block, RowDifference, Run
from eval_tasks.records.determinism import BlockKind

if TYPE_CHECKING:
    from eval_tasks.store import Store


def open_block(
    store: Store,
    run: Run,
    kind: BlockKind,
    reason: str,
    *,
    now: str,
    suite_id: str = "",
    first: Sequence[RowDifference] = (),
    nodes: Sequence[str] = (),
) -> Block:
    """Hold evaluation on the run's fingerprint; the block that stands already where it is the same."""
    fingerprint = run.env_fingerprint or ""
    block_id = store.catalog.open_block(
        fingerprint,
        reason,
        now,
        kind=kind,
        environment=run.environment,
        run_id=run.run_id,
        suite_id=suite_id,
        nodes=[node for node in nodes if node],
        good_until=store.catalog.good_until(fingerprint),
        first=first,
    )
    block = store.catalog.block(block_id)
    store.catalog.raise_alert(
        Alert(
            alert_id=short_id(digest_parts(["block", block_id])),
            kind="determinism_block",
            title=f"environment {block.environment or fingerprint[:12]} is blocked: {block.kind}",
            body="\n".join([*block_lines(block), f"explain it: python -m eval_tasks blocks explain {block_id}"]),
            run_id=block.run_id or None,
            created_at=now,
        )
    )
    return block


def block_lines(block: Block) -> list[str]:
    """What a person needs to know of a block to explain it, line by line."""
    lines = [f"fingerprint {block.fingerprint}", block.reason]
    lines += [f"nodes: {', '.join(block.nodes)}"] if block.nodes else []
    lines += [difference_line(difference) for difference in block.first]
    lines.append(f"rows were last known to be good at {block.good_until}" if block.good_until else "never known good")
    return lines


def difference_line(difference: RowDifference) -> str:
    """One differing item in one line, both values in it."""
    return f"{difference.benchmark} {difference.item_id} {difference.field}: {difference.a} -> {difference.b}"
