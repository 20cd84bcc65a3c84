"""Messages in, one reply of an OpenAI-compatible chat endpoint out. Knows no benchmark, no run and no store.

What may pass is tried again (a cut connection, a timeout, 408, 409, 425, 429, 5xx, a body that is no reply), after the
time that the endpoint asks for or ever longer; what cannot pass is said at once. The key is read from the environment
and appears in no message.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any

from eval_tasks.errors import EvalError, InfraError, UserError
from eval_tasks.records import EndpointAccess, EndpointConfig

if TYPE_CHECKING:
    import httpx

Message = Mapping[str, str]

_PASSES = frozenset({408, 409, 425, 429})
# What an endpoint says of one request: malformed or too long for it, against the law or its policy.
_OF_ONE_REQUEST = frozenset({400, 413, 422, 451})
# How an error of status 403 says that it is about one prompt: details beside it, or its own code or type.
_FLAGGED = ("flagged_input", "reasons")
_MODERATION = frozenset(
    {"content_filter", "content_policy_violation", "moderation", "moderation_blocked", "responsibleaipolicyviolation"}
)
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
_LONGEST_WISH = 600.0
_LOOKS_EVERY = 0.2
_SHOWN = 300

_log = logging.getLogger(__name__)


class RefusedError(EvalError):
    """The endpoint will not answer this one request, whoever asks: too long for it, or against its policy."""


class _MayPassError(Exception):
    """One try failed in a way that another may not; `pause` is what the endpoint asks for, in seconds."""

    def __init__(self, message: str, pause: float | None = None) -> None:
        super().__init__(message)
        self.pause = pause


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One reply. `body` is all of it; `text` is '' where the endpoint sent none."""

    body: Mapping[str, Any]
    text: str
    finish_reason: str
    n_prompt_tokens: int
    n_output_tokens: int

    @staticmethod
    def of(body: object) -> Reply:
        """The reply that a response's JSON body holds. Raises ValueError when it holds none."""
        if not isinstance(body, dict):
            raise ValueError(f"a {type(body).__name__} and no object")
        if body.get("error"):
            raise ValueError(f"an error in a response of status 200: {body['error']}")
        choices = body.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        message = first.get("message") if isinstance(first, dict) else None
        if not isinstance(first, dict) or not isinstance(message, dict):
            raise ValueError("no choices[0].message")
        text = message.get("content")
        if text is not None and not isinstance(text, str):
            raise ValueError(f"the message's content is a {type(text).__name__}")
        usage = body.get("usage")
        counts = usage if isinstance(usage, dict) else {}
        return Reply(
            body=body,
            text=text or "",
            finish_reason=str(first.get("finish_reason") or ""),
            n_prompt_tokens=_count(counts.get("prompt_tokens")),
            n_output_tokens=_count(counts.get("completion_tokens")),
        )


class ChatEndpoint:
    """An endpoint as it is configured, asked from several threads at once. Close it, or use it in a ``with`` block.

    `stopped` says whether to give up: then every wait ends, and no new try is begun.
    """

    def __init__(
        self,
        config: EndpointConfig,
        access: EndpointAccess,
        *,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        import httpx

        self._config = config
        self._access = access
        self._stopped = stopped
        self._key = key_of(access)
        self._client = httpx.Client(
            headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
            timeout=access.timeout_seconds,
            limits=httpx.Limits(max_connections=access.concurrency),
        )

    def body(self, messages: Sequence[Message], *, max_tokens: int, stop: Sequence[str]) -> dict[str, Any]:
        """What is sent for one question."""
        config = self._config
        return {
            "model": config.model,
            "messages": [dict(message) for message in messages],
            "temperature": config.temperature,
            "seed": config.seed,
            "max_tokens": max_tokens,
            **({"stop": list(stop)} if stop else {}),
        }

    def ask(self, body: Mapping[str, Any]) -> Reply:
        """The reply to one request body.

        Raises RefusedError for a request that the endpoint will never answer, UserError for a key, model or URL that it
        does not know, InfraError when it failed as often as it may be tried.
        """
        problem = ""
        for number in range(self._access.tries):
            try:
                return self._try(body)
            except _MayPassError as error:
                problem = str(error)
                pause = error.pause
            if number + 1 < self._access.tries:
                self._wait(_pause(number) if pause is None else pause, problem)
        raise InfraError(f"{self._where}: {problem}; tried {self._access.tries} times, and what was answered is kept")

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> ChatEndpoint:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def _where(self) -> str:
        return f"endpoint {self._config.base_url}, model {self._config.model!r}"

    def _try(self, body: Mapping[str, Any]) -> Reply:
        import httpx

        if self._stopped():
            raise InfraError(f"{self._where}: stopped; what was answered is kept")
        try:
            response = self._client.post(f"{self._config.base_url}/chat/completions", json=dict(body))
        except httpx.TransportError as error:
            raise _MayPassError(self._masked(f"{type(error).__name__}: {error}")) from error
        except httpx.DecodingError as error:
            raise _MayPassError(self._masked(f"a body that cannot be unpacked: {error}")) from error
        if response.status_code != 200:
            raise self._failure(response)
        try:
            return Reply.of(response.json())
        except (ValueError, RecursionError) as error:
            problem = self._masked(str(error))[:_SHOWN]
            raise _MayPassError(f"a body that is no chat completion ({problem}): {self._shown(response)}") from error

    def _failure(self, response: httpx.Response) -> Exception:
        status, said = response.status_code, self._shown(response)
        if status in _PASSES or status >= 500:
            return _MayPassError(f"HTTP {status}: {said}", _wished_pause(response.headers.get("retry-after")))
        if status == 403 and _moderates(response):
            return RefusedError(f"HTTP 403: {said}")
        if status in (401, 403):
            name = self._access.api_key_env
            key = f"the key in {name} is refused" if name else "it wants a key: name its variable in api_key_env"
            return UserError(f"{self._where}: HTTP {status}; {key}")
        if status == 402:
            return InfraError(f"{self._where}: HTTP 402: {said}; what was answered is kept: pay, then retry")
        if status in _OF_ONE_REQUEST:
            return RefusedError(f"HTTP {status}: {said}")
        return UserError(f"{self._where}: HTTP {status}; check base_url and model: {said}")

    def _wait(self, seconds: float, problem: str) -> None:
        if seconds > _LONGEST_WISH:
            raise InfraError(f"{self._where}: {problem}; it asks to come back in {seconds:.0f} s: retry then")
        _log.info("%s: %s; again in %.1f s", self._where, problem, seconds)
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._stopped():
            time.sleep(min(left, _LOOKS_EVERY))

    def _shown(self, response: httpx.Response) -> str:
        # Masked before it is cut: a cut through the key would leave a piece of it that nothing finds.
        return self._masked(response.text)[:_SHOWN].strip() or "an empty body"

    def _masked(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text


def key_of(access: EndpointAccess) -> str:
    """The endpoint's key, '' where it wants none. Raises UserError when its variable is not set, or holds no key."""
    if not access.api_key_env:
        return ""
    key = os.environ.get(access.api_key_env, "").strip()
    if not key:
        raise UserError(f"the endpoint's key belongs into the variable {access.api_key_env}, which is not set here")
    if not key.isascii() or not key.isprintable():
        raise UserError(
            f"the variable {access.api_key_env} holds characters that no header can carry; set the key alone"
        )
    return key


def _moderates(response: httpx.Response) -> bool:
    """Whether an error's body says that this prompt was flagged, rather than that its sender may not ask."""
    try:
        body = response.json()
    except (ValueError, RecursionError):
        return False
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return False
    metadata = error.get("metadata")
    if isinstance(metadata, dict) and any(metadata.get(name) for name in _FLAGGED):
        return True
    return any(isinstance(error.get(name), str) and error[name].lower() in _MODERATION for name in ("code", "type"))


def _pause(number: int) -> float:
    return min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0**number)


def _wished_pause(header: str | None) -> float | None:
    """Seconds of a Retry-After header, which holds a number or a date; None without one that can be read."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
