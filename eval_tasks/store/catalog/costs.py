"""The ledger of costs: a line for each run, the forecast before, what it cost after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlalchemy import Connection, select, text

from eval_tasks.records import Cost, CostEntry
from eval_tasks.store.catalog.part import CatalogPart, decode, encode, put, record_at
from eval_tasks.store.catalog.runs import require_run
from eval_tasks.store.tables import costs as table


class Costs(CatalogPart):
    """What was spent."""

    def reserve_cost(self, entry: CostEntry, check: Callable[[Sequence[CostEntry]], None]) -> CostEntry:
        """Add a run's line unless `check`, given all others, raises; gives the one that stands.

        Two runs that ask at once are looked at one after the other, so that both never fit where one does. A run that
        has a line keeps it, unasked. `check` may be called twice.
        """

        def reserve(connection: Connection) -> CostEntry:
            require_run(connection, entry.run_id)
            if connection.dialect.name == "postgresql":
                connection.execute(text("LOCK TABLE costs IN SHARE ROW EXCLUSIVE MODE"))
            known = record_at(connection, table, {"run_id": entry.run_id})
            if known is not None:
                return decode(CostEntry, known)
            where = table.c.tier == entry.tier
            others = connection.execute(select(table.c.record).where(where).order_by(table.c.created_at)).scalars()
            check([decode(CostEntry, record) for record in others])
            _save(connection, entry)
            return entry

        return self._database.write(reserve)

    def save_cost(self, run_id: str, actual: Cost) -> CostEntry | None:
        """Record what a run cost, in place of what was known; None for a run without a line."""

        def save(connection: Connection) -> CostEntry | None:
            known = record_at(connection, table, {"run_id": run_id})
            if known is None:
                return None
            entry = replace(decode(CostEntry, known), actual=actual)
            _save(connection, entry)
            return entry

        return self._database.write(save)

    def costs(
        self,
        *,
        training_run: str | None = None,
        tier: str | None = None,
        environment: str | None = None,
        limit: int | None = None,
    ) -> list[CostEntry]:
        """The lines that fit, newest first."""
        wanted = {"training_run": training_run, "tier": tier, "environment": environment}
        where = [table.c[name] == value for name, value in wanted.items() if value is not None]
        statement = select(table.c.record).where(*where).order_by(table.c.created_at.desc(), table.c.run_id)
        return self._find(CostEntry, statement.limit(limit) if limit is not None else statement)

    def cost(self, run_id: str) -> CostEntry | None:
        """A run's line, or None."""
        return self._find_one(CostEntry, select(table.c.record).where(table.c.run_id == run_id))


def _save(connection: Connection, entry: CostEntry) -> None:
    values = {
        "training_run": entry.training_run,
        "tier": entry.tier,
        "environment": entry.environment,
        "created_at": entry.created_at,
        "record": encode(entry),
    }
    put(connection, table, {"run_id": entry.run_id}, values)
