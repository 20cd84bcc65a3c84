"""Checkpoint URI -> validated Checkpoint in the catalog. Knows no engine: it reads bytes and headers."""

from __future__ import annotations

import re
from collections.abc import Callable

from eval_tasks.checkpoint import MAX_STEP, build_manifest
from eval_tasks.errors import UserError
from eval_tasks.records import Checkpoint
from eval_tasks.store import Store

_STEP = re.compile(r"(\d+)(?!.*\d)")


def resolve(
    store: Store,
    *,
    checkpoint_uri: str,
    training_run: str,
    step: int | None = None,
    corpora: tuple[str, ...] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Checkpoint:
    """Validate the checkpoint at `checkpoint_uri`, hash its files and record it.

    `step` None takes the last number in the folder's name, or 0. `progress(bytes_done, bytes_total)` is called while
    hashing. Raises CheckpointError with a named reason, UserError for no URI at all; nothing is recorded then.
    """
    if not checkpoint_uri.strip():
        raise UserError("no checkpoint is named; give the URI of its folder, such as s3://bucket/run/step-100")
    if step is None:
        found = _STEP.search(checkpoint_uri.rstrip("/").rsplit("/", 1)[-1])
        step = int(found.group(1)) if found else 0
    if not 0 <= step <= MAX_STEP:
        raise UserError(f"{checkpoint_uri}: {step} is no step; give one from 0 to {MAX_STEP}")
    checkpoint = build_manifest(
        checkpoint_uri,
        training_run=training_run,
        step=step,
        corpora=corpora,
        **({"progress": progress} if progress else {}),
    )
    store.catalog.save_checkpoint(checkpoint)
    return checkpoint
