"""The pages as an app of their own beside the REST API: sign-in by redirect, errors as pages, strict headers."""

from __future__ import annotations

import logging
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

from airflow.api_fastapi.app import get_auth_manager
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException

from checkpoint_eval.api.problems import status_of
from checkpoint_eval.pages.page import Page, html, stylesheet, url
from checkpoint_eval.pages.routes import ROUTERS
from eval_tasks.errors import EvalError

_STATIC = Path(__file__).parent / "static"
_log = logging.getLogger(__name__)

# Figures carry style attributes; nothing else runs or loads that this server did not send.
POLICY = (
    "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; img-src 'self' data:; "
    "form-action 'self'; frame-ancestors 'self'; base-uri 'none'"
)


def build_pages() -> FastAPI:
    """The app, to be mounted in the API's, whose limits hold here too; Airflow's auth manager must be there."""
    app = FastAPI(title="checkpoint-eval pages", openapi_url=None, docs_url=None, redoc_url=None)
    app.state.auth_manager = get_auth_manager()
    app.middleware("http")(_headers)
    for kind in (EvalError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, _failed)
    for router in ROUTERS:
        app.include_router(router, default_response_class=HTMLResponse)

    @app.get("/static/pages.css")
    def css() -> Response:
        return Response(stylesheet(), media_type="text/css")

    @app.get("/static/pages.js")
    def script() -> Response:
        return Response((_STATIC / "pages.js").read_bytes(), media_type="text/javascript")

    @app.get("/")
    def first() -> Response:
        return RedirectResponse(url("runs"))

    return app


async def _headers(request: Request, call_next: Any) -> Response:
    return _guarded(request, await call_next(request))


def _guarded(request: Request, response: Response) -> Response:
    response.headers.setdefault("Content-Security-Policy", POLICY)
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    response.headers.setdefault("Referrer-Policy", "same-origin")
    if "/static/" not in request.url.path:
        response.headers.setdefault("Cache-Control", "no-store")
    return response


async def _failed(request: Request, error: Exception) -> Response:
    """A page that says what is wrong and the way out; a browser without a session is sent to sign in."""
    status, detail = _what(error)
    if status == HTTPStatus.UNAUTHORIZED and request.method == "GET":
        asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"{get_auth_manager().get_url_login()}?next={quote(asked, safe='')}")
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR and not isinstance(error, EvalError):
        _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    page = Page(title=f"{status} {HTTPStatus(status).phrase}", here="", alarms=(detail,), crumbs=(("runs", "Runs"),))
    # An error that nobody expected is answered outside the middleware.
    return _guarded(request, HTMLResponse(html(page), status))


def _what(error: Exception) -> tuple[int, str]:
    if isinstance(error, EvalError):
        return status_of(error), str(error)
    if isinstance(error, RequestValidationError):
        places = [f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}" for each in error.errors()]
        return HTTPStatus.UNPROCESSABLE_ENTITY, "; ".join(places)
    if isinstance(error, HTTPException):
        if error.status_code == HTTPStatus.FORBIDDEN and "JWT" in str(error.detail):
            return HTTPStatus.UNAUTHORIZED, "The session is not valid any more; sign in."  # as after a new secret
        if error.status_code == HTTPStatus.FORBIDDEN:
            return error.status_code, "Your role does not allow this; ask whoever runs this Airflow."
        return error.status_code, str(error.detail)
    return HTTPStatus.INTERNAL_SERVER_ERROR, "The server failed; what happened is in the API server's log."


__all__ = ["POLICY", "build_pages"]
