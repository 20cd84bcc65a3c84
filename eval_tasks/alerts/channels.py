"""Configured channels -> something that takes a message or says why not: Apprise's services, or the log.

Apprise is imported when a channel is made, and only then. An URL is never shown: it holds the receiver's secret.
"""

from __future__ import annotations

import functools
import logging
import os
import re
import threading
import warnings
from typing import Any, Protocol
from urllib.parse import unquote

from eval_tasks.errors import InfraError, UserError
from eval_tasks.policies import AlertChannel, AlertPolicy

_log = logging.getLogger(__name__)
_SHORTEST_SECRET = 6


class _Secrets(logging.Filter):
    """Masks the parts of channels' URLs in whatever Apprise logs: some of its services log the tokens they are given.

    On its logger for good, since a service that hangs may log when its channel has long been given up.
    """

    def __init__(self) -> None:
        super().__init__()
        self._parts: frozenset[str] = frozenset()

    def learn(self, url: str) -> None:
        """Mask the parts of this URL too, as they stand and unquoted."""
        found = [part for part in re.split(r"[:/@?&=#]+", url) for part in (part, unquote(part))]
        self._parts |= {part for part in found if len(part) >= _SHORTEST_SECRET}

    def masked(self, text: str) -> str:
        """The text without any part."""
        for part in sorted(self._parts, key=lambda part: (-len(part), part)):
            text = text.replace(part, "****")
        return text

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record through, masked."""
        record.msg, record.args = self.masked(record.getMessage()), ()
        if record.exc_info:
            record.exc_text = self.masked(logging.Formatter().formatException(record.exc_info))
            record.exc_info = None
        return True


_SECRETS = _Secrets()


class ChannelError(InfraError):
    """A message was not taken: the receiver is away, refused it, or did not answer in time."""


@functools.cache
def _apprise() -> Any:
    try:
        import apprise
    except ModuleNotFoundError as error:
        raise UserError(
            "alert channels need Apprise, which is not installed: pip install checkpoint-eval[airflow]"
        ) from error
    return apprise


class Channel(Protocol):
    """Takes messages."""

    @property
    def name(self) -> str:
        """As configured."""
        ...

    def send(self, title: str, body: str) -> None:
        """Deliver one message. Raises ChannelError; whether it arrived is not known when the answer was late."""
        ...


def channels_of(policy: AlertPolicy) -> list[Channel]:
    """The configured channels; the log where none is. A channel that cannot be made fails when it is sent to."""
    return [AppriseChannel(spec) for spec in policy.channels] or [LogChannel()]


class LogChannel:
    """The embedded default: messages are warnings in the log of whatever delivers."""

    name = "log"

    def send(self, title: str, body: str) -> None:
        """Log it."""
        _log.warning("ALERT %s\n%s", title, body)


class AppriseChannel:
    """A webhook, Slack, a mail address, or another service that Apprise has a URL for."""

    def __init__(self, spec: AlertChannel) -> None:
        self.name = spec.name
        self._spec = spec
        self._service: Any = None

    def send(self, title: str, body: str) -> None:
        """Deliver by Apprise, within the channel's time. Raises ChannelError with what the service said."""
        try:
            service = self._made()
        except UserError as error:  # mended in the configuration, and tried again until then
            raise ChannelError(str(error)) from error
        outcome: list[str] = []
        thread = threading.Thread(target=self._notify, args=(service, title, body, outcome), daemon=True)
        thread.start()
        thread.join(self._spec.timeout_seconds)
        if thread.is_alive():
            raise ChannelError(f"channel {self.name!r}: no answer within {self._spec.timeout_seconds:g} s")
        if outcome:
            raise ChannelError(f"channel {self.name!r}: {outcome[0]}")

    def _notify(self, service: Any, title: str, body: str, outcome: list[str]) -> None:
        """Send; what went wrong is appended to `outcome`."""
        apprise = _apprise()
        try:
            with apprise.LogCapture(level=logging.WARNING) as said:
                if not service.notify(title=title, body=body, body_format=apprise.NotifyFormat.TEXT):
                    lines = [line for line in said.getvalue().splitlines() if line.strip()]
                    outcome.append(self._without_secrets(lines[-1] if lines else "refused, without a word"))
        except Exception as error:  # noqa: BLE001 - each of a hundred services raises its own
            outcome.append(self._without_secrets(f"{type(error).__name__}: {error}"))

    def _made(self) -> Any:
        if self._service is None:
            apprise = _apprise()
            url = self._url()
            _SECRETS.learn(url)
            apprise.logger.addFilter(_SECRETS)  # once, however often it is added
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # some of its services import modules that Python deprecates
                service = apprise.Apprise.instantiate(url, suppress_exceptions=True)
            if service is None:
                raise UserError(f"channel {self.name!r}: Apprise has no service for its URL; see its list of URLs")
            # One alert is one message: what a service cannot hold is cut, never sent in pieces.
            service.overflow_mode = apprise.OverflowMode.TRUNCATE
            service.socket_read_timeout = service.socket_connect_timeout = self._spec.timeout_seconds
            self._service = service
        return self._service

    def _url(self) -> str:
        if self._spec.url_variable is None:
            return self._spec.url or ""
        url = os.environ.get(self._spec.url_variable, "")
        if not url:
            raise UserError(f"channel {self.name!r}: the variable {self._spec.url_variable} is not set here")
        return url

    def _without_secrets(self, text: str) -> str:
        _SECRETS.learn(self._url())
        return _SECRETS.masked(text)
