"""The outbox -> messages, each once to each channel. One call is one pass: whatever is due is tried once.

An alert is claimed before it is sent and recorded after. A sender that dies in between, or a receiver whose answer
comes too late, leaves a delivery of which nobody knows whether it arrived: it is sent again, with the same alert id in
it. That is the one way to a double message; to a lost one there is none.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from eval_tasks.alerts.channels import Channel, ChannelError
from eval_tasks.alerts.message import message
from eval_tasks.policies import AlertPolicy
from eval_tasks.store import Store

_log = logging.getLogger(__name__)

LEASE_SECONDS = 300.0
_MOST_PER_PASS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryReport:
    """What one pass did: deliveries that were sent, and (channel, reason) of those that failed."""

    sent: int = 0
    failed: tuple[tuple[str, str], ...] = ()


def deliver(
    store: Store,
    channels: Sequence[Channel],
    policy: AlertPolicy,
    *,
    owner: str,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> DeliveryReport:
    """Send what is due. `owner` names this sender in claims; two calls of one sender hold claims of their own.

    A channel that fails is left alone for the rest of the pass, and holds up no other; the alert is tried again after
    `retry_seconds`, doubled with each attempt up to `retry_limit_seconds`, for as long as it takes.
    """
    owner = f"{owner}:{uuid.uuid4().hex}"
    store.catalog.fan_out([channel.name for channel in channels], clock())
    sent, failed = 0, []
    for channel in channels:
        for _ in range(_MOST_PER_PASS):
            delivery = store.catalog.claim_delivery(channel.name, owner, LEASE_SECONDS, clock())
            if delivery is None:
                break
            title, body = message(store, store.catalog.find_alert(delivery.alert_id), policy.base_url)
            try:
                channel.send(title, body)
            except ChannelError as error:
                delay = min(policy.retry_seconds * 2 ** min(delivery.attempts - 1, 30), policy.retry_limit_seconds)
                store.catalog.undelivered(delivery, owner, str(error), clock().timestamp() + delay)
                _log.warning("alert %s: %s; tried again in %.0f s", delivery.alert_id, error, delay)
                failed.append((channel.name, str(error)))
                break
            store.catalog.delivered(delivery, owner, clock())
            sent += 1
    return DeliveryReport(sent=sent, failed=tuple(failed))
