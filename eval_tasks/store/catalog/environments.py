"""Environments, the baselines adopted in them, and the blocks that hold evaluation there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from sqlalchemy import Connection, select

from eval_tasks.digests import digest_value, short_id
from eval_tasks.errors import UserError
from eval_tasks.records import Environment
from eval_tasks.store.catalog.part import CatalogPart, change, decode, encode, put, record_at, unknown
from eval_tasks.store.database import insert_of
from eval_tasks.store.moments import Moment, utc_text
from eval_tasks.store.tables import baselines, blocks, environments

BaselineStatus = Literal["candidate", "adopted", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The run whose rows stand for an environment on a fixed suite. `effect`: what was measured of the change."""

    env_fingerprint: str
    suite_id: str
    run_id: str
    status: BaselineStatus
    recorded_at: str
    rows_digest: str = ""
    decided_by: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Evaluation is held on an env_fingerprint until a person explains why its rows changed."""

    block_id: str
    fingerprint: str
    reason: str
    opened_at: str
    explained_by: str | None = None
    explanation: str | None = None
    explained_at: str | None = None


class Environments(CatalogPart):
    """Where runs ran, and whether they may."""

    def save_environment(self, environment: Environment) -> str:
        """Record an environment; gives its fingerprint."""
        fingerprint = environment.env_fingerprint
        values = {"record": encode(environment)}
        self._database.write(lambda connection: put(connection, environments, {"env_fingerprint": fingerprint}, values))
        return fingerprint

    def environment(self, fingerprint: str) -> Environment:
        """The environment of that fingerprint. Raises UserError when there is none."""
        statement = select(environments.c.record).where(environments.c.env_fingerprint == fingerprint)
        found = self._find_one(Environment, statement)
        if found is None:
            raise unknown("environment", fingerprint, (e.env_fingerprint for e in self.environments()))
        return found

    def environments(self) -> list[Environment]:
        """All environments in the order they were first seen."""
        return self._find(Environment, select(environments.c.record).order_by(environments.c.seq))

    def save_baseline(self, baseline: Baseline) -> None:
        """Record the baseline of an environment on a suite, in place of an earlier one."""
        key = {"env_fingerprint": baseline.env_fingerprint, "suite_id": baseline.suite_id}
        values = {"status": baseline.status, "record": encode(baseline)}
        self._database.write(lambda connection: put(connection, baselines, key, values))

    def baseline(self, fingerprint: str, suite_id: str) -> Baseline | None:
        """The baseline of an environment on a suite, or None for an environment that has none yet."""
        where = (baselines.c.env_fingerprint == fingerprint, baselines.c.suite_id == suite_id)
        return self._find_one(Baseline, select(baselines.c.record).where(*where))

    def baselines(self, suite_id: str | None = None, status: BaselineStatus | None = None) -> list[Baseline]:
        """The baselines that fit, the one recorded last first."""
        statement = select(baselines.c.record).order_by(baselines.c.seq)
        if suite_id is not None:
            statement = statement.where(baselines.c.suite_id == suite_id)
        if status is not None:
            statement = statement.where(baselines.c.status == status)
        return sorted(self._find(Baseline, statement), key=lambda baseline: baseline.recorded_at, reverse=True)

    def open_block(self, fingerprint: str, reason: str, now: Moment) -> str:
        """Hold evaluation in an environment; gives the block's id. One that is open for the same reason is that one."""
        at = utc_text(now)

        def open_one(connection: Connection) -> str:
            where = blocks.c.env_fingerprint == fingerprint
            known = [decode(Block, text) for text in connection.execute(select(blocks.c.record).where(where)).scalars()]
            for block in known:
                if block.explained_at is None and block.reason == reason:
                    return block.block_id
            block_id = short_id(digest_value([fingerprint, reason, at, len(known)]))
            block = Block(block_id=block_id, fingerprint=fingerprint, reason=reason, opened_at=at)
            values = {"block_id": block_id, "env_fingerprint": fingerprint, "explained": False, "record": encode(block)}
            # Another process may have opened the same one since it was looked for.
            statement = insert_of(connection, blocks).values(values)
            connection.execute(statement.on_conflict_do_nothing(index_elements=["block_id"]))
            return block_id

        return self._database.write(open_one)

    def open_blocks(self, fingerprint: str | None = None) -> list[Block]:
        """The blocks that nobody has explained, everywhere or in one environment, oldest first."""
        return [block for block in self.blocks(fingerprint) if block.explained_at is None]

    def blocks(self, fingerprint: str | None = None) -> list[Block]:
        """All blocks, explained ones too, oldest first."""
        statement = select(blocks.c.record).order_by(blocks.c.seq)
        if fingerprint is not None:
            statement = statement.where(blocks.c.env_fingerprint == fingerprint)
        return self._find(Block, statement)

    def explain_block(self, block_id: str, by: str, reason: str, now: Moment) -> Block:
        """Lift a block. Raises UserError without a name and a reason, or when it is lifted already."""
        if not by.strip() or not reason.strip():
            raise UserError("explaining a block needs a name and a reason: both are kept")

        def explain(connection: Connection) -> Block:
            text = record_at(connection, blocks, {"block_id": block_id})
            if text is None:
                raise unknown("block", block_id, connection.execute(select(blocks.c.block_id)).scalars())
            block = decode(Block, text)
            if block.explained_at is not None:
                raise UserError(f"block {block_id!r} was explained by {block.explained_by!r} at {block.explained_at}")
            block = replace(block, explained_by=by, explanation=reason, explained_at=utc_text(now))
            change(connection, blocks, {"block_id": block_id}, {"explained": True, "record": encode(block)})
            return block

        return self._database.write(explain)
