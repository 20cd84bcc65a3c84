"""Runs: what was asked for, and where it stands."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import Any

from sqlalchemy import Connection, and_, not_, or_, select, update

from eval_tasks.digests import digest_parts
from eval_tasks.errors import DataError, UserError, did_you_mean
from eval_tasks.records import Run
from eval_tasks.records.grader import JUDGE
from eval_tasks.store.catalog.part import CatalogPart, decode, encode, record_at, unknown
from eval_tasks.store.database import insert_of
from eval_tasks.store.tables import baselines, blocks, nights, reruns
from eval_tasks.store.tables import runs as table

_SHOWN_MATCHES = 5
_CHANGEABLE = tuple(field.name for field in fields(Run) if field.name != "run_id")


class Runs(CatalogPart):
    """The runs of the catalog."""

    def create_run(self, run: Run) -> Run:
        """Record a run, unless there is one of its id; gives the one that stands."""

        def create(connection: Connection) -> Run:
            statement = insert_of(connection, table).values(run_id=run.run_id, **_columns(run))
            connection.execute(statement.on_conflict_do_nothing(index_elements=["run_id"]))
            return _locked(connection, run.run_id)

        return self._database.write(create)

    def run(self, run_id: str) -> Run:
        """The run of that id, or whose id alone begins so. Raises UserError for none or for several."""
        return self._database.read(lambda connection: _resolve(connection, run_id))

    def update_run(self, run_id: str, **changes: Any) -> Run:
        """Replace fields of a run, as `dataclasses.replace` does, in one transaction; gives the new one.

        Raises UserError for a run or field that is not there, DataError for a value that does not fit.
        """
        for name in changes:
            if name not in _CHANGEABLE:
                raise UserError(f"a run has no field {name!r} to change; {did_you_mean(name, _CHANGEABLE)}")
        return self._database.write(
            lambda connection: _save(connection, replace(_locked(connection, run_id), **changes))
        )

    def pin_environment(self, run_id: str, env_fingerprint: str) -> Run:
        """Say which environment a run's shards run in: the first to say so decides, and with it the config_digest.

        Raises DataError when the run has another fingerprint: a run never straddles two environments.
        """

        def pin(connection: Connection) -> Run:
            run = _locked(connection, run_id)
            if run.env_fingerprint == env_fingerprint:
                return run
            if run.env_fingerprint is not None:
                raise DataError(
                    f"run {run.run_id!r} runs in environment {run.env_fingerprint}, and a shard reports "
                    f"{env_fingerprint}: its machines are not alike"
                )
            config_digest = digest_parts([run.request.request_digest, env_fingerprint])
            return _save(connection, replace(run, env_fingerprint=env_fingerprint, config_digest=config_digest))

        return self._database.write(pin)

    def runs_stood_on(self) -> set[str]:
        """The ids of the runs that a baseline, a block, a night or a comparison of reruns names."""

        def read(connection: Connection) -> set[str]:
            texts = [text for t in _STOOD_ON for text in connection.execute(select(t.c.record)).scalars()]
            ids = connection.execute(select(table.c.run_id)).scalars()
            named = set(re.findall(r"[0-9a-f]{32,}", " ".join(texts)))
            return {run_id for run_id in ids if run_id in named}

        return self._database.read(read)

    def runs(
        self,
        *,
        training_run: str | None = None,
        tier: str | None = None,
        suite: str | None = None,
        checkpoint_id: str | None = None,
        status: str | None = None,
        judging: bool | None = False,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[Run]:
        """The runs that fit every filter, newest first; those that follow the run `after` in this order, when given.

        `judging`: runs of judges on stored outputs instead of evaluations; None for both. One judge's have its name as
        their suite.
        """
        wanted = {
            "training_run": training_run,
            "tier": tier,
            "suite": suite,
            "checkpoint_id": checkpoint_id,
            "status": status,
        }
        where = [table.c[name] == value for name, value in wanted.items() if value is not None]
        if after is not None:
            last = select(table.c.created_at, table.c.seq).where(table.c.run_id == after).subquery()
            earlier = table.c.created_at < select(last.c.created_at).scalar_subquery()
            same_time = table.c.created_at == select(last.c.created_at).scalar_subquery()
            where.append(or_(earlier, and_(same_time, table.c.seq < select(last.c.seq).scalar_subquery())))
        if judging is not None:
            of_a_judge = table.c.suite.startswith(JUDGE)
            where.append(of_a_judge if judging else not_(of_a_judge))
        statement = select(table.c.record).where(*where).order_by(table.c.created_at.desc(), table.c.seq.desc())
        return self._find(Run, statement.limit(limit) if limit is not None else statement)


# What compares a run's rows again, or names them as the standard: outputs that these stand on stay.
_STOOD_ON = (baselines, blocks, reruns, nights)


def require_run(connection: Connection, run_id: str) -> None:
    """Raise UserError when no run has exactly that id: what belongs to a run is stored under its whole id.

    Its row is locked until the transaction ends: of two that write what a run has not yet, one waits for the other.
    """
    if connection.execute(select(table.c.seq).where(table.c.run_id == run_id).with_for_update()).first() is None:
        raise unknown("run", run_id, _all_ids(connection))


def _columns(run: Run) -> dict[str, Any]:
    return {
        "checkpoint_id": run.request.checkpoint_id,
        "training_run": run.training_run,
        "step": run.step,
        "suite": run.request.suite,
        "tier": run.tier,
        "status": run.status,
        "created_at": run.created_at,
        "record": encode(run),
    }


def _save(connection: Connection, run: Run) -> Run:
    connection.execute(update(table).where(table.c.run_id == run.run_id).values(_columns(run)))
    return run


def _locked(connection: Connection, run_id: str) -> Run:
    """The run, its row locked until the transaction ends: two changes of one run must not undo each other."""
    found = _resolve(connection, run_id)
    text = record_at(connection, table, {"run_id": found.run_id})
    return found if text is None else decode(Run, text)


def _resolve(connection: Connection, run_id: str) -> Run:
    exact = connection.execute(select(table.c.record).where(table.c.run_id == run_id)).scalar_one_or_none()
    if exact is not None:
        return decode(Run, exact)
    begins = table.c.run_id.startswith(run_id, autoescape=True)
    statement = select(table.c.run_id, table.c.record).where(begins).order_by(table.c.run_id)
    found = connection.execute(statement.limit(_SHOWN_MATCHES + 1)).all() if run_id else []
    if len(found) > 1:
        shown = ", ".join(row.run_id for row in found[:_SHOWN_MATCHES])
        raise UserError(f"{run_id!r} is the beginning of several runs: {shown}; give more of the id")
    if not found:
        raise unknown("run", run_id, _all_ids(connection))
    return decode(Run, found[0].record)


def _all_ids(connection: Connection) -> list[str]:
    return list(connection.execute(select(table.c.run_id)).scalars())
