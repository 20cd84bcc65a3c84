"""Alerts: each once, until somebody says what became of it."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import Connection, select

from eval_tasks.errors import UserError
from eval_tasks.records import Alert
from eval_tasks.store.catalog.part import CatalogPart, change, decode, encode, record_at, unknown
from eval_tasks.store.database import insert_of
from eval_tasks.store.moments import Moment, utc_text
from eval_tasks.store.tables import alerts as table


class Alerts(CatalogPart):
    """What a person should see."""

    def raise_alert(self, alert: Alert) -> bool:
        """Record an alert. False when it was there already, so that nobody is told twice."""
        values = {
            "alert_id": alert.alert_id,
            "kind": alert.kind,
            "run_id": alert.run_id,
            "training_run": alert.training_run,
            "acknowledged": alert.acknowledged_by is not None,
            "fanned_out": False,
            "record": encode(alert),
        }

        def add(connection: Connection) -> bool:
            statement = insert_of(connection, table).values(values).on_conflict_do_nothing(index_elements=["alert_id"])
            # Not by rowcount: drivers do not agree on it for an INSERT.
            return connection.execute(statement.returning(table.c.alert_id)).first() is not None

        return self._database.write(add)

    def alerts(
        self,
        *,
        run_id: str | None = None,
        training_run: str | None = None,
        kind: str | None = None,
        acknowledged: bool | None = None,
        limit: int | None = None,
    ) -> list[Alert]:
        """The alerts that fit every filter, newest first."""
        wanted = {"run_id": run_id, "training_run": training_run, "kind": kind, "acknowledged": acknowledged}
        where = [table.c[name] == value for name, value in wanted.items() if value is not None]
        statement = select(table.c.record).where(*where).order_by(table.c.seq.desc())
        return self._find(Alert, statement.limit(limit) if limit is not None else statement)

    def find_alert(self, alert_id: str) -> Alert:
        """The alert of that id, or whose id alone begins so. Raises UserError for none or for several."""
        statement = select(table.c.record).where(table.c.alert_id.startswith(alert_id, autoescape=True))
        found = self._find(Alert, statement.order_by(table.c.alert_id).limit(2))
        if len(found) > 1 and alert_id != found[0].alert_id:
            raise UserError(f"{alert_id!r} is the beginning of several alerts; give more of the id")
        if not found or not alert_id:
            raise unknown("alert", alert_id, (alert.alert_id for alert in self.alerts()))
        return found[0]

    def acknowledge_alert(self, alert_id: str, by: str, reason: str, now: Moment) -> Alert:
        """Say who saw an alert and what became of it. Raises UserError without a name or a reason, or a second time."""
        if not by.strip() or not reason.strip():
            raise UserError("acknowledging an alert needs a name and a reason: both are kept")

        def acknowledge(connection: Connection) -> Alert:
            text = record_at(connection, table, {"alert_id": alert_id})
            if text is None:
                raise unknown("alert", alert_id, connection.execute(select(table.c.alert_id)).scalars())
            alert = decode(Alert, text)
            if alert.acknowledged_by is not None:
                raise UserError(f"alert {alert_id!r} was acknowledged by {alert.acknowledged_by!r}")
            alert = replace(alert, acknowledged_by=by, acknowledged_reason=f"{reason} ({utc_text(now)})")
            change(connection, table, {"alert_id": alert_id}, {"acknowledged": True, "record": encode(alert)})
            return alert

        return self._database.write(acknowledge)
