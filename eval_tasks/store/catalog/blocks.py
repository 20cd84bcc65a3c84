"""The blocks that hold evaluation, who lifted each, and which runs they put in doubt; and who waits at the gate."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sqlalchemy import Connection, delete, select

from eval_tasks.digests import digest_value, short_id
from eval_tasks.errors import UserError
from eval_tasks.records import Block, Clearing, RowDifference, Run
from eval_tasks.records.determinism import BlockKind, BlockOutcome
from eval_tasks.store.catalog.part import CatalogPart, change, decode, encode, put, record_at, unknown
from eval_tasks.store.database import insert_of
from eval_tasks.store.moments import Moment, epoch_seconds, utc_text
from eval_tasks.store.tables import blocks, gate_tickets, runs, shards


class Blocks(CatalogPart):
    """What holds evaluation, and what waits for it."""

    def open_block(
        self,
        fingerprint: str,
        reason: str,
        now: Moment,
        *,
        kind: BlockKind = "rows_changed",
        environment: str = "",
        run_id: str = "",
        suite_id: str = "",
        nodes: Sequence[str] = (),
        good_until: str = "",
        first: Sequence[RowDifference] = (),
    ) -> str:
        """Hold evaluation in an environment; gives the block's id. One that is open for the same reason is that one.

        So is one of the same kind that another night found: the same change, seen once more, is explained once.
        """
        at = utc_text(now)

        def open_one(connection: Connection) -> str:
            where = blocks.c.env_fingerprint == fingerprint
            known = [decode(Block, text) for text in connection.execute(select(blocks.c.record).where(where)).scalars()]
            for block in known:
                same = block.reason == reason or (suite_id and block.suite_id == suite_id)
                if block.explained_at is None and block.kind == kind and same:
                    return block.block_id
            block_id = short_id(digest_value([fingerprint, reason, at, len(known)]))
            block = Block(
                block_id=block_id,
                fingerprint=fingerprint,
                reason=reason,
                opened_at=at,
                kind=kind,
                environment=environment,
                run_id=run_id,
                suite_id=suite_id,
                nodes=tuple(nodes),
                good_until=good_until,
                first=tuple(first),
            )
            values = {"block_id": block_id, "env_fingerprint": fingerprint, "explained": False, "record": encode(block)}
            # Another process may have opened the same one since it was looked for.
            statement = insert_of(connection, blocks).values(values)
            connection.execute(statement.on_conflict_do_nothing(index_elements=["block_id"]))
            return block_id

        return self._database.write(open_one)

    def open_blocks(self, fingerprint: str | None = None) -> list[Block]:
        """The blocks that nobody has explained, everywhere or in one environment, oldest first."""
        statement = select(blocks.c.record).where(blocks.c.explained.is_(False)).order_by(blocks.c.seq)
        if fingerprint is not None:
            statement = statement.where(blocks.c.env_fingerprint == fingerprint)
        return self._find(Block, statement)

    def blocks(self, fingerprint: str | None = None) -> list[Block]:
        """All blocks, explained ones too, oldest first."""
        statement = select(blocks.c.record).order_by(blocks.c.seq)
        if fingerprint is not None:
            statement = statement.where(blocks.c.env_fingerprint == fingerprint)
        return self._find(Block, statement)

    def block(self, block_id: str) -> Block:
        """The block of that id, or whose id alone begins so. Raises UserError for none or for several."""
        known = {block.block_id: block for block in self.blocks()}
        found = [known[block_id]] if block_id in known else [b for i, b in known.items() if i.startswith(block_id)]
        if len(found) > 1 and block_id:
            raise UserError(f"{block_id!r} is the beginning of several blocks; give more of the id")
        if len(found) != 1:
            raise unknown("block", block_id, known)
        return found[0]

    def explain_block(
        self, block_id: str, by: str, reason: str, now: Moment, outcome: BlockOutcome = "baseline kept"
    ) -> Block:
        """Lift a block. Raises UserError without a name and a reason, or when it is lifted already."""
        if not by.strip() or not reason.strip():
            raise UserError("explaining a block needs a name and a reason: both are kept")

        def explain(connection: Connection) -> Block:
            block = _locked(connection, block_id)
            if block.explained_at is not None:
                raise UserError(f"block {block_id!r} was explained by {block.explained_by!r} at {block.explained_at}")
            if outcome == "baseline adopted" and not block.may_adopt:
                raise UserError(
                    f"block {block_id!r} is of kind {block.kind}: there are no other rows to adopt; "
                    "say 'baseline kept' or 'runs suspect'"
                )
            block = replace(block, explained_by=by, explanation=reason, explained_at=utc_text(now), outcome=outcome)
            change(connection, blocks, {"block_id": block_id}, {"explained": True, "record": encode(block)})
            return block

        return self._database.write(explain)

    def clear_runs(self, block_id: str, run_ids: Collection[str], by: str, reason: str, now: Moment) -> Block:
        """Say that suspect runs' numbers stand all the same. Raises UserError without a name and a reason."""
        if not by.strip() or not reason.strip():
            raise UserError("clearing suspect runs needs a name and a reason: both are kept")
        at = utc_text(now)

        def clear(connection: Connection) -> Block:
            block = _locked(connection, block_id)
            done = {clearing.run_id for clearing in block.cleared}
            new = [Clearing(run_id=r, by=by, reason=reason, at=at) for r in sorted(set(run_ids) - done)]
            block = replace(block, cleared=(*block.cleared, *new))
            change(connection, blocks, {"block_id": block_id}, {"record": encode(block)})
            return block

        return self._database.write(clear)

    def suspicions(self, run: Run) -> list[Block]:
        """The blocks because of which the numbers of a run are in doubt, oldest first."""
        if run.env_fingerprint is None:
            return []
        known = self.blocks(run.env_fingerprint)
        return [block for block in known if block.makes_suspect(run.run_id, run.env_fingerprint, run.closed_at)]

    def suspects(self, block: Block) -> list[Run]:
        """The runs that a block puts in doubt, oldest first."""
        in_doubt = select(shards.c.run_id).where(shards.c.env_fingerprint == block.fingerprint).distinct()
        statement = select(runs.c.record).where(runs.c.run_id.in_(in_doubt)).order_by(runs.c.created_at, runs.c.seq)
        found = self._find(Run, statement)
        return [run for run in found if block.makes_suspect(run.run_id, run.env_fingerprint, run.closed_at)]

    def hold_ticket(self, ticket: str, environment: str, place: str, now: Moment) -> None:
        """Note that a run waits at the gate, and that it is still there. `place`: text by which runs are let go."""
        values = {"environment": environment, "place": place, "seen_at": epoch_seconds(now)}
        self._database.write(lambda connection: put(connection, gate_tickets, {"ticket": ticket}, values))

    def return_ticket(self, ticket: str) -> None:
        """A run has gone through, or was ended."""
        statement = delete(gate_tickets).where(gate_tickets.c.ticket == ticket)
        self._database.write(lambda connection: connection.execute(statement))

    def tickets(self, environment: str) -> list[tuple[str, str, float]]:
        """(place, ticket, when it was last seen in seconds) of the runs that wait, in the order they are let go."""
        columns = select(gate_tickets.c.place, gate_tickets.c.ticket, gate_tickets.c.seen_at)
        statement = columns.where(gate_tickets.c.environment == environment)
        rows = self._database.read(lambda connection: connection.execute(statement).all())
        return sorted((str(place), str(ticket), float(seen)) for place, ticket, seen in rows)


def _locked(connection: Connection, block_id: str) -> Block:
    text = record_at(connection, blocks, {"block_id": block_id})
    if text is None:
        raise unknown("block", block_id, connection.execute(select(blocks.c.block_id)).scalars())
    return decode(Block, text)
