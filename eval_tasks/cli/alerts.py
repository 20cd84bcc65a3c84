"""Commands on alerts: what was raised, who was told, who has seen it."""

from __future__ import annotations

import getpass
import logging
import os
import socket
from dataclasses import asdict
from datetime import UTC, datetime

import click

from eval_tasks.alerts import channels_of, deliver
from eval_tasks.cli.output import json_option, opened, print_json, print_table
from eval_tasks.records import to_json
from eval_tasks.settings import Settings, load_config
from eval_tasks.store import Delivery


@click.group("alerts")
def alerts_group() -> None:
    """List, deliver and acknowledge alerts."""


@alerts_group.command("list")
@click.option("--open", "only_open", is_flag=True, help="Only those that nobody has acknowledged.")
@json_option
def alerts_list(only_open: bool, as_json: bool) -> None:
    """List alerts, newest first, and who was told."""
    store = opened()
    alerts = store.catalog.alerts(acknowledged=False if only_open else None)
    told: dict[str, list[Delivery]] = {}
    for delivery in store.catalog.deliveries():
        told.setdefault(delivery.alert_id, []).append(delivery)
    if as_json:
        print_json([{**to_json(a), "deliveries": [asdict(d) for d in told.get(a.alert_id, [])]} for a in alerts])
        return
    rows = [
        (
            a.alert_id[:12],
            a.created_at,
            a.kind,
            a.title,
            "\n".join(map(_delivery_text, told.get(a.alert_id, []))),
            a.acknowledged_by,
        )
        for a in alerts
    ]
    print_table("alerts", ("alert", "created (UTC)", "kind", "title", "told", "acknowledged by"), rows)


def _delivery_text(delivery: Delivery) -> str:
    if delivery.state == "sent":
        return f"{delivery.channel}: sent"
    tries = f", {delivery.attempts} tries" if delivery.attempts else ""
    return f"{delivery.channel}: waits{tries}" + (f": {delivery.error}" if delivery.error else "")


@alerts_group.command("show")
@click.argument("alert_id")
def alerts_show(alert_id: str) -> None:
    """Show one alert with its raw outputs. ALERT_ID may be the beginning of one."""
    store = opened()
    alert = store.catalog.find_alert(alert_id)
    click.echo(f"{alert.title}\n{alert.created_at}, {alert.kind}, {alert.alert_id}\n\n{alert.body}")
    for delivery in store.catalog.deliveries(alert.alert_id):
        click.echo(_delivery_text(delivery))
    if alert.acknowledged_by:
        click.echo(f"acknowledged by {alert.acknowledged_by}: {alert.acknowledged_reason}")


@alerts_group.command("deliver")
def alerts_deliver() -> int:
    """Send what is due, once; exits with 1 when a channel failed. The DAG deliver_alerts does this by itself."""
    logging.getLogger("eval_tasks.alerts").setLevel(logging.INFO)
    policy = load_config(Settings().config).alerts
    owner = f"{socket.gethostname()}:{os.getpid()}"
    report = deliver(opened(), channels_of(policy), policy, owner=owner)
    click.echo(f"sent: {report.sent}")
    for _, reason in report.failed:
        click.echo(f"failed: {reason}")
    return 1 if report.failed else 0


@alerts_group.command("acknowledge")
@click.argument("alert_id")
@click.option("--reason", required=True)
@click.option("--by", default=None, help="Default: the user of this process.")
def alerts_acknowledge(alert_id: str, reason: str, by: str | None) -> None:
    """Acknowledge one alert with a reason. ALERT_ID may be the beginning of one."""
    store = opened()
    alert = store.catalog.find_alert(alert_id)
    store.catalog.acknowledge_alert(alert.alert_id, by or getpass.getuser(), reason, datetime.now(UTC))
    click.echo(f"acknowledged {alert.alert_id}")


COMMANDS = (alerts_group,)
