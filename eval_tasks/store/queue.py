"""Planned batches in, claims and results out: Pending -> Running -> Done by compare-and-swap.

One example is one work item, keyed by (run, benchmark version, item). A batch's items move together because their state
is their batch's. Knows no shard and no pod; owners are names, one per attempt. No clock is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from eval_tasks.digests import digest_bytes, digest_parts
from eval_tasks.errors import DataError, UserError
from eval_tasks.records import PlannedBatch
from eval_tasks.store.database import Database
from eval_tasks.store.moments import Moment, epoch_seconds
from eval_tasks.store.tables import work_batches, work_items
from eval_tasks.store.text import storable_text

PENDING, RUNNING, DONE = "pending", "running", "done"

# Batches per transaction: half a million items must not hold the write lock for seconds.
_CHUNK = 500


@dataclass(frozen=True, slots=True)
class _Claim:
    state: str
    owner: str | None
    owners: str
    result_id: str | None

    def was_held_by(self, owner: str) -> bool:
        return f"\n{owner}\n" in self.owners


def work_key(run_id: str, benchmark_id: str, item_id: str) -> bytes:
    """The key of one example's work: 32 bytes, the same wherever the item stands in whichever plan."""
    # Lengths keep the parts apart; canonical JSON would take half of the time of queueing a large run.
    text = storable_text(f"{len(run_id)}:{run_id}{len(benchmark_id)}:{benchmark_id}{item_id}")
    return bytes.fromhex(digest_bytes(text.encode("utf-8")))


class WorkQueue:
    """The work of open runs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def enqueue(self, run_id: str, batches: Sequence[PlannedBatch]) -> int:
        """Queue the batches of a run; gives how many items are new. What is queued already stays as it stands.

        Raises DataError when a batch is queued with other items, or an item in another batch.
        """
        ordered = sorted(batches, key=lambda batch: batch.batch)
        chunks = (ordered[start : start + _CHUNK] for start in range(0, len(ordered), _CHUNK))
        return sum(self._enqueue_chunk(run_id, chunk) for chunk in chunks)

    def try_claim(self, run_id: str, batch: int, owner: str, lease_seconds: float, now: Moment) -> bool:
        """Take a batch that is pending, or whose lease has run out at `now`. False when it is held or done."""
        _check_owner(owner)
        seconds = epoch_seconds(now)
        free = or_(
            work_batches.c.state == PENDING,
            and_(work_batches.c.state == RUNNING, work_batches.c.lease_until <= seconds),
        )
        values = {
            "state": RUNNING,
            "owner": owner,
            "owners": work_batches.c.owners + f"{owner}\n",
            "lease_until": seconds + lease_seconds,
        }

        def claim(connection: Connection) -> bool:
            won = connection.execute(update(work_batches).where(*_is(run_id, batch), free).values(values)).rowcount == 1
            if not won:
                _claim_of(connection, run_id, batch)
            return won

        return self._database.write(claim)

    def renew(self, run_id: str, batch: int, owner: str, lease_seconds: float, now: Moment) -> bool:
        """Extend the owner's lease. False when the batch has gone to somebody else, or is done."""
        held = (work_batches.c.state == RUNNING, work_batches.c.owner == owner)
        lease_until = epoch_seconds(now) + lease_seconds
        statement = update(work_batches).where(*_is(run_id, batch), *held).values(lease_until=lease_until)
        return self._database.write(lambda connection: connection.execute(statement).rowcount == 1)

    def release(self, run_id: str, batch: int, owner: str) -> bool:
        """Give a batch back before its lease ends. False when it is not the owner's to give."""
        held = (work_batches.c.state == RUNNING, work_batches.c.owner == owner)
        free = {"state": PENDING, "owner": None, "lease_until": None}
        statement = update(work_batches).where(*_is(run_id, batch), *held).values(free)
        return self._database.write(lambda connection: connection.execute(statement).rowcount == 1)

    def try_complete(self, run_id: str, batch: int, owner: str, result_id: str) -> bool:
        """Record a batch's result. True for the one owner who did; False when somebody else was first.

        An owner whose lease ran out may still be first. Raises DataError when the batch has another result: two
        computations of the same items differ, which must never be.
        """

        def complete(connection: Connection) -> bool:
            claim = _claim_of(connection, run_id, batch, lock=True)
            if not claim.was_held_by(owner):
                raise UserError(f"{owner!r} cannot complete batch {batch} of run {run_id!r}: it never claimed it")
            if claim.state == DONE:
                if claim.result_id != result_id:
                    raise DataError(
                        f"batch {batch} of run {run_id!r} has the result {claim.result_id} by {claim.owner!r}, and "
                        f"{owner!r} got {result_id} for the same items: the engine is not deterministic here"
                    )
                return claim.owner == owner
            done = {"state": DONE, "owner": owner, "lease_until": None, "result_id": result_id}
            statement = update(work_batches).where(*_is(run_id, batch), work_batches.c.state != DONE).values(done)
            return connection.execute(statement).rowcount == 1

        return self._database.write(complete)

    def results(self, run_id: str) -> dict[int, str]:
        """Batch -> result_id of the batches that are done, in batch order."""
        columns = select(work_batches.c.batch, work_batches.c.result_id)
        statement = columns.where(work_batches.c.run_id == run_id, work_batches.c.state == DONE)
        rows = self._database.read(lambda connection: connection.execute(statement.order_by("batch")).all())
        return {int(batch): str(result_id) for batch, result_id in rows}

    def counts(self, run_id: str) -> dict[str, int]:
        """How many items are `pending`, `running` and `done`; all 0 for a run that was never queued."""
        per_state = select(work_batches.c.state, func.sum(work_batches.c.n_items))
        statement = per_state.where(work_batches.c.run_id == run_id).group_by(work_batches.c.state)
        found = self._database.read(lambda connection: connection.execute(statement).all())
        return {PENDING: 0, RUNNING: 0, DONE: 0, **{str(state): int(n) for state, n in found}}

    def uncompacted(self) -> dict[str, int]:
        """How many per-item rows each run has, for runs that have any."""
        statement = select(work_items.c.run_id, func.count()).group_by(work_items.c.run_id)
        rows = self._database.read(lambda connection: connection.execute(statement).all())
        return {str(run_id): int(n_rows) for run_id, n_rows in rows}

    def compact(self, run_id: str) -> int:
        """Drop the per-item rows of a run all of whose work is done; gives how many. Results and counts stay.

        Raises UserError while work is open.
        """

        def last_batch(connection: Connection) -> int:
            of_run = work_batches.c.run_id == run_id
            n_open = select(func.count()).select_from(work_batches).where(of_run, work_batches.c.state != DONE)
            if found := connection.execute(n_open).scalar_one():
                raise UserError(f"run {run_id!r} has {found} batches that are not done: its queue cannot be compacted")
            last: int | None = connection.execute(
                select(func.max(work_items.c.batch)).where(_items_of(run_id))
            ).scalar()
            return -1 if last is None else last

        def drop(connection: Connection, start: int) -> int:
            span = work_items.c.batch.between(start, start + _CHUNK - 1)
            return connection.execute(delete(work_items).where(_items_of(run_id), span)).rowcount

        starts = range(0, self._database.read(last_batch) + 1, _CHUNK)
        return sum(self._database.write(partial(drop, start=start)) for start in starts)

    def _enqueue_chunk(self, run_id: str, chunk: Sequence[PlannedBatch]) -> int:
        digests = {batch.batch: digest_parts([batch.benchmark_id, *batch.item_ids]) for batch in chunk}
        span = (work_batches.c.run_id == run_id, work_batches.c.batch.between(chunk[0].batch, chunk[-1].batch))

        def add(connection: Connection) -> int:
            statement = select(work_batches.c.batch, work_batches.c.items_digest).where(*span)
            queued = {int(batch): str(digest) for batch, digest in connection.execute(statement)}
            for batch in chunk:
                if queued.get(batch.batch, digests[batch.batch]) != digests[batch.batch]:
                    raise DataError(
                        f"batch {batch.batch} of run {run_id!r} is queued with other items: its plan changed"
                    )
            new = [batch for batch in chunk if batch.batch not in queued]
            if not new:
                return 0
            connection.execute(insert(work_batches), [_batch_row(run_id, b, digests[b.batch]) for b in new])
            connection.execute(insert(work_items), list(_item_rows(run_id, new)))
            return sum(len(batch.item_ids) for batch in new)

        try:
            return self._database.write(add)
        except IntegrityError:
            pass  # another process may have queued the same plan at the same time: then there is nothing left to add
        try:
            return self._database.write(add)
        except IntegrityError as error:
            raise DataError(
                f"run {run_id!r}: an item is in two batches: its plan changed, or names it twice"
            ) from error


def _items_of(run_id: str) -> ColumnElement[bool]:
    return work_items.c.run_id == run_id


def _batch_row(run_id: str, batch: PlannedBatch, digest: str) -> dict[str, object]:
    return {
        "run_id": run_id,
        "batch": batch.batch,
        "items_digest": digest,
        "n_items": len(batch.item_ids),
        "state": PENDING,
        "owners": "\n",
    }


def _item_rows(run_id: str, batches: Sequence[PlannedBatch]) -> Iterator[dict[str, object]]:
    for batch in batches:
        for item_id in batch.item_ids:
            yield {"key": work_key(run_id, batch.benchmark_id, item_id), "run_id": run_id, "batch": batch.batch}


def _is(run_id: str, batch: int) -> tuple[ColumnElement[bool], ...]:
    return (work_batches.c.run_id == run_id, work_batches.c.batch == batch)


def _claim_of(connection: Connection, run_id: str, batch: int, *, lock: bool = False) -> _Claim:
    columns = (work_batches.c.state, work_batches.c.owner, work_batches.c.owners, work_batches.c.result_id)
    statement = select(*columns).where(*_is(run_id, batch))
    row = connection.execute(statement.with_for_update() if lock else statement).one_or_none()
    if row is None:
        raise UserError(f"run {run_id!r} has no batch {batch} in its queue: enqueue its plan first")
    return _Claim(*row)


def _check_owner(owner: str) -> None:
    if not owner or "\n" in owner:
        raise UserError(f"not a name of an owner: {owner!r}")
