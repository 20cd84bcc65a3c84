"""The shards of a run: what was planned for a pod, and what it reports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sqlalchemy import Connection, insert, select

from eval_tasks.errors import UserError
from eval_tasks.records import EngineTuning, PlannedShard, Run
from eval_tasks.records.plan import Group
from eval_tasks.store.catalog.part import CatalogPart, change, decode, encode, record_at
from eval_tasks.store.catalog.runs import require_run
from eval_tasks.store.tables import runs
from eval_tasks.store.tables import shards as table

ShardStatus = Literal["planned", "running", "done", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardRow:
    """A shard of a run. `n_items` was planned, `n_done` is what its pods did in all; `seconds` is the last pod's,
    `total_seconds` what all of them took that lived to say so.

    `tuning`: what the last pod's engine ran with, when that is known.
    """

    run_id: str
    shard: int
    group: Group
    n_batches: int
    n_items: int
    cost_tokens: int
    status: ShardStatus = "planned"
    env_fingerprint: str | None = None
    node: str = ""
    n_done: int = 0
    seconds: float = 0.0
    total_seconds: float = 0.0
    reason: str = ""
    tuning: EngineTuning | None = None


class Shards(CatalogPart):
    """What became of each shard."""

    def save_shards(self, run_id: str, shards: Sequence[PlannedShard]) -> None:
        """Record the planned shards of a run; those that are there keep what they report. No such run: UserError."""

        def save(connection: Connection) -> None:
            require_run(connection, run_id)
            statement = select(table.c.shard).where(table.c.run_id == run_id)
            present = set(connection.execute(statement).scalars())
            rows = [_columns(_planned(run_id, shard)) for shard in shards if shard.shard not in present]
            if rows:
                connection.execute(insert(table), rows)

        self._database.write(save)

    def seconds_per_item(self, suite: str, latest: int = 20) -> float | None:
        """Seconds that a shard computed for an item, over the finished shards of the latest runs of a suite by name.

        None where no engine's run of it has any. A shard that was begun again counts with its last pod's seconds.
        """
        newest = select(runs.c.record).where(runs.c.suite == suite, runs.c.status == "closed")
        chosen = self._find(Run, newest.order_by(runs.c.seq.desc()).limit(latest))
        ids = [run.run_id for run in chosen if run.origin == "engine"]
        done = select(table.c.record).where(table.c.run_id.in_(ids), table.c.status == "done")
        found = [row for row in self._find(ShardRow, done) if row.seconds > 0]
        n_items = sum(row.n_items for row in found)
        return math.fsum(row.seconds for row in found) / n_items if n_items else None

    def record_shard(
        self,
        run_id: str,
        shard: int,
        *,
        status: ShardStatus,
        env_fingerprint: str | None = None,
        node: str = "",
        n_items: int = 0,
        seconds: float = 0.0,
        reason: str = "",
        tuning: EngineTuning | None = None,
    ) -> ShardRow:
        """Record what a pod says of its shard (`n_items`: how many are done). Raises UserError for no such shard."""
        key = {"run_id": run_id, "shard": shard}

        def record(connection: Connection) -> ShardRow:
            text = record_at(connection, table, key)
            if text is None:
                require_run(connection, run_id)
                raise UserError(f"run {run_id!r} has no shard {shard}; its plan was not saved, or has fewer")
            before = decode(ShardRow, text)
            ended = seconds if status in ("done", "failed") else 0.0
            row = replace(
                before,
                status=status,
                env_fingerprint=env_fingerprint,
                node=node,
                n_done=n_items,
                seconds=float(seconds),
                total_seconds=before.total_seconds + float(ended),
                reason=reason,
                tuning=tuning,
            )
            change(connection, table, key, _columns(row))
            return row

        return self._database.write(record)

    def shards(self, run_id: str) -> list[ShardRow]:
        """The shards of a run, by number; none for a run without a plan."""
        return self._find(ShardRow, select(table.c.record).where(table.c.run_id == run_id).order_by(table.c.shard))


def _planned(run_id: str, shard: PlannedShard) -> ShardRow:
    return ShardRow(
        run_id=run_id,
        shard=shard.shard,
        group=shard.group,
        n_batches=shard.n_batches,
        n_items=shard.n_items,
        cost_tokens=shard.cost_tokens,
    )


def _columns(row: ShardRow) -> dict[str, object]:
    return {
        "run_id": row.run_id,
        "shard": row.shard,
        "status": row.status,
        "env_fingerprint": row.env_fingerprint,
        "record": encode(row),
    }
