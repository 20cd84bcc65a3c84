"""Checkpoints by content. The same content at another step or place is the same checkpoint, seen once more."""

from __future__ import annotations

from sqlalchemy import select

from eval_tasks.records import Checkpoint
from eval_tasks.store.catalog.part import CatalogPart, encode, put, unknown
from eval_tasks.store.tables import checkpoints as table


class Checkpoints(CatalogPart):
    """The checkpoints that were found valid."""

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Record a checkpoint where it was seen; seen again, the new place replaces the old one."""
        key = {
            "checkpoint_id": checkpoint.checkpoint_id,
            "training_run": checkpoint.training_run,
            "step": checkpoint.step,
        }
        self._database.write(lambda connection: put(connection, table, key, {"record": encode(checkpoint)}))

    def checkpoint(self, checkpoint_id: str) -> Checkpoint:
        """The checkpoint of that id, as it was last registered. Raises UserError when there is none."""
        statement = select(table.c.record).where(table.c.checkpoint_id == checkpoint_id).order_by(table.c.seq.desc())
        found = self._find_one(Checkpoint, statement)
        if found is None:
            raise unknown("checkpoint", checkpoint_id, (c.checkpoint_id for c in self.checkpoints()))
        return found

    def corpora_of(self, checkpoint_id: str) -> tuple[str, ...]:
        """The corpora that a checkpoint was trained on, by name: all that any of its registrations names.

        The same content seen elsewhere, by someone who named none, was trained on no less. None are known of the empty
        id, which an imported run has. Raises UserError when there is no such checkpoint.
        """
        if not checkpoint_id:
            return ()
        seen = self._find(Checkpoint, select(table.c.record).where(table.c.checkpoint_id == checkpoint_id))
        if not seen:
            raise unknown("checkpoint", checkpoint_id, (c.checkpoint_id for c in self.checkpoints()))
        return tuple(sorted({corpus for checkpoint in seen for corpus in checkpoint.corpora}))

    def checkpoints(self, training_run: str | None = None) -> list[Checkpoint]:
        """All checkpoints, or one training run's, by training run and step; of one step, in order of registration."""
        statement = select(table.c.record).order_by(table.c.training_run, table.c.step, table.c.seq)
        if training_run is not None:
            statement = statement.where(table.c.training_run == training_run)
        return self._find(Checkpoint, statement)
