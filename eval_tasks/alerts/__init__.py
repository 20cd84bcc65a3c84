"""Alerts of the catalog -> messages on channels, each once to each. Knows no Airflow; the catalog has the outbox."""

from eval_tasks.alerts.channels import Channel, ChannelError, channels_of
from eval_tasks.alerts.delivery import DeliveryReport, deliver
from eval_tasks.alerts.lateness import raise_late

__all__ = ["Channel", "ChannelError", "DeliveryReport", "channels_of", "deliver", "raise_late"]
