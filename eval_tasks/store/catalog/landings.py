"""The landing ledger: each version of each step's directory exactly once, and what was done about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from sqlalchemy import Connection, select

from eval_tasks.records import Landing
from eval_tasks.store.catalog.part import CatalogPart, decode, encode, put, record_at, unknown
from eval_tasks.store.moments import Moment, utc_text
from eval_tasks.store.tables import landings as table

LandingState = Literal["waiting", "ready", "dispatched", "broken", "gone", "superseded", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LandingRow:
    """A landing and its state.

    `first_seen_at`: when this listing was first seen (a quiet period counts from here). `place_first_seen_at`: when its
    directory was first seen without having been dispatched since (a limit on uploads counts from here; `alerted` goes
    over to the next listing with it). `changed_at`: when the state last changed. `finished`: the DAG runs that have
    ended, with a report or with the reason why there is none. `skipped`: those that are not to be started, on purpose.
    `promoted`: a person asked for the selection tier.
    """

    landing: Landing
    state: LandingState
    reason: str = ""
    first_seen_at: str
    place_first_seen_at: str
    changed_at: str
    dag_runs: tuple[str, ...] = ()
    alerted: bool = False
    finished: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    promoted: bool = False


class Landings(CatalogPart):
    """What was seen in checkpoint storage."""

    def see_landing(self, landing: Landing, now: Moment) -> LandingRow:
        """Record that a listing is there; gives its row. A new one waits, and supersedes what had not been dispatched.

        A listing that was gone or superseded and is there again waits once more.
        """

        def see(connection: Connection) -> LandingRow:
            text = record_at(connection, table, {"landing_id": landing.landing_id})
            row = None if text is None else decode(LandingRow, text)
            if row is not None and row.state not in ("gone", "superseded"):
                return row
            at = utc_text(now)
            fresh = LandingRow(
                landing=landing, state="waiting", first_seen_at=at, place_first_seen_at=at, changed_at=at
            )
            for earlier in _open_at(connection, landing):
                fresh = replace(
                    fresh,
                    place_first_seen_at=min(fresh.place_first_seen_at, earlier.place_first_seen_at),
                    alerted=fresh.alerted or earlier.alerted,
                )
                _save(connection, replace(earlier, state="superseded", changed_at=at))
            _save(connection, fresh)
            return fresh

        return self._database.write(see)

    def mark_landing(
        self,
        landing_id: str,
        *,
        now: Moment,
        state: LandingState | None = None,
        reason: str | None = None,
        dag_runs: Sequence[str] | None = None,
        alerted: bool | None = None,
        skipped: Sequence[str] | None = None,
        promoted: bool | None = None,
    ) -> LandingRow:
        """Change what is given; gives the new row. Raises UserError for an unknown landing."""

        def mark(connection: Connection) -> LandingRow:
            text = record_at(connection, table, {"landing_id": landing_id})
            if text is None:
                raise unknown("landing", landing_id, connection.execute(select(table.c.landing_id)).scalars())
            row = decode(LandingRow, text)
            changes: dict[str, Any] = {"reason": reason, "alerted": alerted, "state": state, "promoted": promoted}
            changes["dag_runs"] = None if dag_runs is None else tuple(dag_runs)
            changes["skipped"] = None if skipped is None else tuple(skipped)
            if state not in (None, row.state):
                changes["changed_at"] = utc_text(now)
            row = replace(row, **{name: value for name, value in changes.items() if value is not None})
            _save(connection, row)
            return row

        return self._database.write(mark)

    def finish_landing(self, landing_id: str, dag_run: str) -> None:
        """Note that a DAG run of a landing has ended. Raises UserError for an unknown landing."""

        def finish(connection: Connection) -> None:
            text = record_at(connection, table, {"landing_id": landing_id})
            if text is None:
                raise unknown("landing", landing_id, connection.execute(select(table.c.landing_id)).scalars())
            row = decode(LandingRow, text)
            if dag_run not in row.finished:
                _save(connection, replace(row, finished=(*row.finished, dag_run)))

        self._database.write(finish)

    def landing(self, landing_id: str) -> LandingRow:
        """The row of a landing. Raises UserError when it was never seen."""
        found = self._find_one(LandingRow, select(table.c.record).where(table.c.landing_id == landing_id))
        if found is None:
            raise unknown("landing", landing_id, (row.landing.landing_id for row in self.landings()))
        return found

    def landings(self, training_run: str | None = None, state: LandingState | None = None) -> list[LandingRow]:
        """The landings that fit, by training run and numeric step; of one step, in the order they were seen."""
        statement = select(table.c.record).order_by(table.c.training_run, table.c.step)
        if training_run is not None:
            statement = statement.where(table.c.training_run == training_run)
        if state is not None:
            statement = statement.where(table.c.state == state)
        rows = self._find(LandingRow, statement)
        return sorted(rows, key=lambda r: (r.landing.training_run, r.landing.step, r.first_seen_at, r.landing.uri))


def _open_at(connection: Connection, landing: Landing) -> list[LandingRow]:
    """What was seen at the same place before and has not been dispatched, gone or superseded."""
    statement = select(table.c.record).where(
        table.c.training_run == landing.training_run,
        table.c.step == landing.step,
        table.c.uri == landing.uri,
        table.c.landing_id != landing.landing_id,
        table.c.state.in_(("waiting", "ready", "broken")),
    )
    return [decode(LandingRow, text) for text in connection.execute(statement).scalars()]


def _save(connection: Connection, row: LandingRow) -> None:
    columns = {
        "training_run": row.landing.training_run,
        "step": row.landing.step,
        "uri": row.landing.uri,
        "state": row.state,
        "record": encode(row),
    }
    put(connection, table, {"landing_id": row.landing.landing_id}, columns)
