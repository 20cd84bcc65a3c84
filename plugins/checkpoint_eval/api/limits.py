"""What is refused before any route is asked: writes from other sites, bodies too large, callers too fast.

Airflow's session cookie travels with any request that a browser makes to it, from whatever page; a bearer token does
not. So a write that comes with a cookie must come from this origin.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import urlsplit

from airflow.configuration import conf
from limits import RateLimitItemPerSecond
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from checkpoint_eval.api.problems import problem

MOST_BODY_BYTES = 1024 * 1024
# One caller's in any two seconds: a page asks for a dozen things at once, a client's loop must not starve the others.
READS = RateLimitItemPerSecond(200, 2)
WRITES = RateLimitItemPerSecond(20, 2)

_TOO_LARGE = f"a body may have {MOST_BODY_BYTES:,} bytes"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class Limits:
    """ASGI middleware. `reads` and `writes`: what one caller may ask of one server process."""

    def __init__(
        self, app: ASGIApp, reads: RateLimitItemPerSecond = READS, writes: RateLimitItemPerSecond = WRITES
    ) -> None:
        self._app = app
        self._reads = reads
        self._writes = writes
        self._limiter = FixedWindowRateLimiter(MemoryStorage())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or hand on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            status, detail = refusal
            wait = {"Retry-After": "2"} if status == HTTPStatus.TOO_MANY_REQUESTS else None
            await problem(scope["path"], status, detail, headers=wait)(scope, receive, send)
            return
        await self._app(scope, _Counted(receive), send)

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[HTTPStatus, str] | None:
        is_write = scope["method"] not in _SAFE
        if is_write and _travels_by_itself(headers) and not is_of_this_site(headers):
            return HTTPStatus.FORBIDDEN, "a write from another site: call from this origin, or with a bearer token"
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MOST_BODY_BYTES:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _TOO_LARGE
        limit = self._writes if is_write else self._reads
        if not self._limiter.hit(limit, _caller(scope, headers), "write" if is_write else "read"):
            return HTTPStatus.TOO_MANY_REQUESTS, f"more than {limit}: wait a moment"
        return None


class _Counted:
    """`receive` that ends a body without a declared length once it is too long."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._n_bytes = 0

    async def __call__(self) -> Message:
        message = await self._receive()
        self._n_bytes += len(message.get("body", b""))
        if self._n_bytes > MOST_BODY_BYTES:
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _TOO_LARGE)
        return message


def is_of_this_site(headers: Mapping[str, str]) -> bool:
    """Whether a browser says that the request comes from a page of this server, by `Origin` or `Sec-Fetch-Site`."""
    origin = headers.get("origin")
    if origin is None:
        return headers.get("sec-fetch-site") == "same-origin"
    known = {headers.get("host", ""), urlsplit(conf.get("api", "base_url", fallback="")).netloc}
    return urlsplit(origin).netloc in known - {""}


def _travels_by_itself(headers: Mapping[str, str]) -> bool:
    """Whether the only credential is a cookie, which a browser sends whoever made the request."""
    return "cookie" in headers and not headers.get("authorization", "").lower().startswith("bearer ")


def _caller(scope: Scope, headers: Headers) -> str:
    """Whoever holds the credential; the address of one who has none."""
    credential = headers.get("authorization") or headers.get("cookie")
    return credential or (scope["client"][0] if scope.get("client") else "")
