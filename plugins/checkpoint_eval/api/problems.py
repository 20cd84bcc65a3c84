"""Errors as RFC 9457 problem documents: what is wrong, with which value, and the way out. Nothing of the inside."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from eval_tasks.errors import (
    BlockedError,
    CheckpointGoneError,
    DataError,
    EvalError,
    InfraError,
    NotComparableError,
    UnknownError,
    UserError,
)

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = "5"

_log = logging.getLogger(__name__)

# The first that fits; EvalError is the base of all.
_STATUSES: tuple[tuple[type[EvalError], HTTPStatus], ...] = (
    (UnknownError, HTTPStatus.NOT_FOUND),
    (NotComparableError, HTTPStatus.CONFLICT),
    (UserError, HTTPStatus.BAD_REQUEST),
    (BlockedError, HTTPStatus.LOCKED),
    (CheckpointGoneError, HTTPStatus.GONE),
    (InfraError, HTTPStatus.SERVICE_UNAVAILABLE),
    (DataError, HTTPStatus.CONFLICT),
)


class Problem(BaseModel):
    """An RFC 9457 problem document."""

    type: str = Field("about:blank", description="What kind of problem; about:blank says no more than `status`.")
    title: str
    status: int
    detail: str = Field(description="What is wrong, with which value, and the way out.")
    instance: str = Field(description="The path that was asked.")


def documented(*statuses: HTTPStatus) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that may end in these, and in what every route may end in."""
    common = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS)
    every = (*common, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE, *statuses)
    schema = {"schema": {"$ref": "#/components/schemas/Problem"}}
    return {
        int(status): {"model": Problem, "description": status.phrase, "content": {MEDIA_TYPE: schema}}
        for status in every
    }


def problem(
    path: str, status: int, detail: str, *, kind: str = "about:blank", headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """A response with one problem document."""
    title = HTTPStatus(status).phrase
    content = Problem(type=kind, title=title, status=status, detail=detail, instance=path)
    return JSONResponse(content.model_dump(), status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Let every error of `app` end as a problem document."""
    app.add_exception_handler(EvalError, _of_library)
    app.add_exception_handler(RequestValidationError, _of_input)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(Exception, _of_a_fault)


def status_of(error: EvalError) -> HTTPStatus:
    """The status that an error of the library ends in."""
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), HTTPStatus.INTERNAL_SERVER_ERROR)


async def _of_library(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, EvalError)
    status = status_of(error)
    headers = {"Retry-After": RETRY_SECONDS} if status == HTTPStatus.SERVICE_UNAVAILABLE else None
    kind = f"urn:checkpoint-eval:{type(error).__name__}"
    return problem(request.url.path, status, str(error), kind=kind, headers=headers)


async def _of_input(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    places = [f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}" for each in error.errors()]
    return problem(request.url.path, HTTPStatus.UNPROCESSABLE_ENTITY, "; ".join(places))


async def _of_http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return problem(request.url.path, error.status_code, str(error.detail), headers=error.headers)


async def _of_a_fault(request: Request, error: Exception) -> JSONResponse:
    """A fault of ours: it is in the log, and not in the answer."""
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    detail = "the server failed; what happened is in the API server's log"
    return problem(request.url.path, HTTPStatus.INTERNAL_SERVER_ERROR, detail)
