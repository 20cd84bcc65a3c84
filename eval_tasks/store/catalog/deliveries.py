"""The outbox of alerts: each alert once to each channel, claimed by compare-and-swap, tried again until it was sent.

A row is a delivery. It is written in the transaction that marks its alert as fanned out, so that an alert has a
delivery to every channel of the configuration at that time, or is not fanned out yet. No clock is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, and_, insert, or_, select, update

from eval_tasks.store.catalog.part import CatalogPart
from eval_tasks.store.moments import Moment, epoch_seconds, utc_text
from eval_tasks.store.tables import alert_deliveries as table
from eval_tasks.store.tables import alerts

_MOST_AT_ONCE = 500

DeliveryState = Literal["pending", "sending", "sent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """An alert on its way to a channel. `attempts` counts those begun; `due_at` (epoch seconds): no sooner again.

    `error`: why the last attempt failed. `sent_at`: UTC, ISO 8601.
    """

    alert_id: str
    channel: str
    state: DeliveryState
    attempts: int
    due_at: float
    error: str = ""
    sent_at: str | None = None


class Deliveries(CatalogPart):
    """Who was told of what."""

    def fan_out(self, channels: Sequence[str], now: Moment) -> int:
        """Give the alerts that have none yet a delivery to each of `channels`; the number of new deliveries."""
        due_at = epoch_seconds(now)

        def add(connection: Connection) -> int:
            statement = select(alerts.c.alert_id).where(alerts.c.fanned_out.is_(False)).order_by(alerts.c.seq)
            new = list(connection.execute(statement.limit(_MOST_AT_ONCE).with_for_update()).scalars())
            if not new:
                return 0
            rows = [
                {
                    "alert_id": alert_id,
                    "channel": channel,
                    "state": "pending",
                    "attempts": 0,
                    "due_at": due_at,
                    "error": "",
                }
                for alert_id in new
                for channel in channels
            ]
            if rows:
                connection.execute(insert(table), rows)
            connection.execute(update(alerts).where(alerts.c.alert_id.in_(new)).values(fanned_out=True))
            return len(rows)

        return self._database.write(add)

    def claim_delivery(self, channel: str, owner: str, lease_seconds: float, now: Moment) -> Delivery | None:
        """The oldest delivery that is due on `channel`, now `owner`'s to send; None when there is none.

        One whose sender was silent for its lease is due again: whether it was sent is not known.
        """
        seconds = epoch_seconds(now)
        due = or_(
            and_(table.c.state == "pending", table.c.due_at <= seconds),
            and_(table.c.state == "sending", table.c.lease_until <= seconds),
        )
        oldest = select(table.c.seq).where(table.c.channel == channel, due).order_by(table.c.seq).limit(1)

        def claim(connection: Connection) -> Delivery | None:
            seq = connection.execute(oldest.with_for_update(skip_locked=True)).scalar_one_or_none()
            if seq is None:
                return None
            values = {
                "state": "sending",
                "owner": owner,
                "lease_until": seconds + lease_seconds,
                "attempts": table.c.attempts + 1,
            }
            connection.execute(update(table).where(table.c.seq == seq, due).values(values))
            return _delivery(connection.execute(select(table).where(table.c.seq == seq)).one())

        return self._database.write(claim)

    def delivered(self, delivery: Delivery, owner: str, now: Moment) -> bool:
        """Record that `owner` sent what it had claimed. False when its lease ran out and another has it."""
        return self._finish(delivery, owner, {"state": "sent", "sent_at": utc_text(now), "error": ""})

    def undelivered(self, delivery: Delivery, owner: str, error: str, due_at: float) -> bool:
        """Record why it failed, and when it is to be tried again. False as for `delivered`."""
        return self._finish(delivery, owner, {"state": "pending", "error": error, "due_at": due_at})

    def deliveries(self, alert_id: str | None = None, state: DeliveryState | None = None) -> list[Delivery]:
        """The deliveries that fit, in the order their alerts were raised."""
        statement = select(table).order_by(table.c.seq)
        if alert_id is not None:
            statement = statement.where(table.c.alert_id == alert_id)
        if state is not None:
            statement = statement.where(table.c.state == state)
        rows = self._database.read(lambda connection: connection.execute(statement).all())
        return [_delivery(row) for row in rows]

    def _finish(self, delivery: Delivery, owner: str, values: dict[str, Any]) -> bool:
        held = (
            table.c.alert_id == delivery.alert_id,
            table.c.channel == delivery.channel,
            table.c.state == "sending",
            table.c.owner == owner,
        )
        free = {"owner": None, "lease_until": None, **values}
        statement = update(table).where(*held).values(free)
        return self._database.write(lambda connection: connection.execute(statement).rowcount == 1)


def _delivery(row: Any) -> Delivery:
    return Delivery(
        alert_id=row.alert_id,
        channel=row.channel,
        state=row.state,
        attempts=row.attempts,
        due_at=row.due_at,
        error=row.error,
        sent_at=row.sent_at,
    )
