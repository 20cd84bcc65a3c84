"""Messages to a real webhook and a real mail server, and to receivers that fail, hang or are not there."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pydantic import ValidationError

from eval_tasks.alerts.channels import AppriseChannel, ChannelError, LogChannel, channels_of
from eval_tasks.alerts.delivery import LEASE_SECONDS
from eval_tasks.policies import AlertChannel, AlertPolicy
from tests.alerts.receivers import MailServer, Webhook


def channel(url: str, **changes: object) -> AppriseChannel:
    return AppriseChannel(AlertChannel.model_validate({"name": "on-call", "url": url} | changes))


def test_a_webhook_gets_title_and_body_as_they_are(webhook: Webhook) -> None:
    body = "mmlu acc: 0.02, expected 0.2 to 1\n\n[1] item q7 (ok)\n  output: '<b>ü & \\u2028</b>'"
    channel(webhook.url).send("mmlu quarantined", body)
    (payload,) = webhook.received
    assert (payload["title"], payload["message"]) == ("mmlu quarantined", body)


def test_a_mail_server_gets_a_mail(mail: MailServer) -> None:
    channel(mail.url).send("mmlu quarantined", "five outputs\nin lines")
    (message,) = mail.mails
    assert (message["Subject"], message["To"]) == ("mmlu quarantined", "oncall@example.org")
    text = message.get_body(("plain",))
    assert text is not None and "five outputs\nin lines" in text.get_content().replace("\r\n", "\n")


def test_a_very_long_message_stays_one_message(webhook: Webhook) -> None:
    channel(webhook.url).send("long", "x" * 200_000)
    assert webhook.n_requests == 1
    assert len(webhook.received[0]["message"]) > 10_000


def test_a_receiver_that_refuses_is_said_with_what_it_answered(webhook: Webhook) -> None:
    webhook.status = 503
    with pytest.raises(ChannelError, match=r"channel 'on-call': .*503"):
        channel(webhook.url).send("t", "b")


def test_a_receiver_that_is_not_there_fails(webhook: Webhook) -> None:
    webhook.close()
    with pytest.raises(ChannelError, match="channel 'on-call': "):
        channel(webhook.url).send("t", "b")


def test_a_receiver_that_hangs_is_given_up_in_time(webhook: Webhook) -> None:
    webhook.hang_seconds = 5
    began = time.monotonic()
    with pytest.raises(ChannelError, match="channel 'on-call': "):
        channel(webhook.url, timeout_seconds=0.3).send("t", "b")
    assert time.monotonic() - began < 3


def test_an_url_comes_from_a_variable_and_is_never_shown(webhook: Webhook, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = f"json://127.0.0.1:{webhook.port}/s3cr3t-token"
    monkeypatch.setenv("ON_CALL_URL", secret)
    spec = AlertChannel(name="on-call", url_variable="ON_CALL_URL")
    AppriseChannel(spec).send("t", "b")
    assert webhook.titles == ["t"]
    webhook.close()
    with pytest.raises(ChannelError) as failed:
        AppriseChannel(spec).send("t", "b")
    assert "s3cr3t" not in str(failed.value)


def test_what_a_service_logs_has_no_secret_in_it(caplog: pytest.LogCaptureFixture) -> None:
    # Slack's service logs a token that it does not take, as it is.
    with caplog.at_level(logging.DEBUG), pytest.raises(ChannelError):
        channel("slack://T1JJ3T3L2/A1BRTD4JD/not%20a-s3cr3t-token").send("t", "b")
    logging.getLogger("apprise").warning("late: %s", "not a-s3cr3t-token")
    try:
        raise ValueError("posting to A1BRTD4JD/x")
    except ValueError:
        logging.getLogger("apprise").exception("failed")
    assert "late: ****" in caplog.text and "posting to ****" in caplog.text
    assert not any(secret in caplog.text for secret in ("s3cr3t", "T1JJ3T3L2", "A1BRTD4JD"))


@pytest.mark.parametrize("seconds", [0, 240.5, 300])
def test_a_channel_is_given_less_time_than_the_lease_of_a_delivery(seconds: float) -> None:
    assert AlertChannel(name="x", url="json://h", timeout_seconds=240).timeout_seconds < LEASE_SECONDS
    with pytest.raises(ValidationError, match="timeout_seconds"):
        AlertChannel(name="x", url="json://h", timeout_seconds=seconds)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"url_variable": "NO_SUCH_VARIABLE"}, "channel 'x': the variable NO_SUCH_VARIABLE is not set here"),
        ({"url": "nosuchservice://token"}, "channel 'x': Apprise has no service for its URL"),
    ],
)
def test_a_channel_that_cannot_be_made_fails_by_name(spec: dict[str, str], said: str) -> None:
    with pytest.raises(ChannelError, match=said):
        AppriseChannel(AlertChannel.model_validate({"name": "x", **spec})).send("t", "b")


def test_without_channels_the_log_is_told(caplog: pytest.LogCaptureFixture) -> None:
    (only,) = channels_of(AlertPolicy())
    assert isinstance(only, LogChannel)
    with caplog.at_level(logging.WARNING):
        only.send("mmlu quarantined", "five outputs")
    assert "ALERT mmlu quarantined\nfive outputs" in caplog.text


def test_apprise_is_imported_only_to_send() -> None:
    script = "import sys, eval_tasks.alerts, eval_tasks.cli.alerts; print('apprise' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
